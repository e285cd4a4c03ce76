// Bytes of a number in what a device keeps of parameters. The optimizer's tensors have 4.
//
//   StateNumbers n{/*weights=*/2, /*gradients=*/4};
//   StateNumbersName(n);                               // "2+4"
//
// With 4 bytes a weight gradients have 4, too, and both move between devices in the step's number
// type. Narrow weights and their gradients move as they are, and the optimizer keeps a copy of the
// weights in 4 bytes.
#ifndef PIPELAB_PIPELINES_COST_STATE_NUMBERS_H_
#define PIPELAB_PIPELINES_COST_STATE_NUMBERS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct StateNumbers {
  int64_t weights = 4;    // that passes compute with: 1, 2 or 4
  int64_t gradients = 4;  // that micro-batches are summed in, and copies: 2 or 4
  // Where weights are sharded, a device's part of them is that copy, and its part of the gradients
  // has 4 bytes: what moves is cast (FSDP's mixed precision).
  bool cast = false;

  bool narrow() const { return weights < 4; }
  // Bytes of a number in a device's part where weights, or gradients, are sharded.
  int64_t part_weights() const { return cast ? 0 : weights; }  // the copy is the optimizer's
  int64_t part_gradients() const { return cast ? 4 : gradients; }
  // Bytes that the optimizer keeps per parameter: in `tensors`, and in the masters of narrow
  // weights.
  int64_t OptimizerBytes(int tensors) const { return 4 * (tensors + (narrow() ? 1 : 0)); }

  friend bool operator==(const StateNumbers& a, const StateNumbers& b) {
    return a.weights == b.weights && a.gradients == b.gradients && a.cast == b.cast;
  }
};

std::string StateNumbersName(StateNumbers n);  // "2+4", "2+4+cast"
// InvalidArgument says what would be right.
absl::StatusOr<StateNumbers> FindStateNumbers(absl::string_view name);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_STATE_NUMBERS_H_
