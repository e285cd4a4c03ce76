// What every Communicator must do, as a list of cases. Each transport's test runs them all.
//
//   RankRunner runner = ...;                      // how to be n ranks: threads, or this process's
//   rank for (const ConformanceCase& c : ConformanceCases()) c.run(runner);
//
// A case calls the runner with a body that is executed once by every rank, on a fresh communicator
// each time, and reports through GoogleTest. Tensors come from the arena that the runner passes.
#ifndef PIPELAB_KERNELS_COMM_CONFORMANCE_H_
#define PIPELAB_KERNELS_COMM_CONFORMANCE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kernels/comm/communicator.h"
#include "kernels/tensor/arena.h"

namespace pipelab {

using RankBody = std::function<void(Communicator&, Arena&)>;
// Runs `body` as each of `size` ranks and returns when those that run here are done.
using RankRunner = std::function<void(int size, const RankBody& body)>;

struct ConformanceCase {
  std::string name;  // a test's name: letters only
  std::function<void(const RankRunner&)> run;
};

std::vector<ConformanceCase> ConformanceCases();

// Waits that should succeed: long enough for a loaded machine under a sanitizer.
inline constexpr absl::Duration kPatience = absl::Seconds(60);

// Parts of the list, a file each.
std::vector<ConformanceCase> MessageCases();
std::vector<ConformanceCase> CollectiveCases();
std::vector<ConformanceCase> FaultCases();

// Element i of the test tensor called `name`: small integers, so that float sums are exact.
int64_t TestValue(int64_t name, int64_t i);
// A tensor filled with TestValue(name, .); bfloat16 gets only the values that it can hold.
Tensor TestTensor(Arena& arena, const TensorSpec& spec, int64_t name);
// The first element that is not TestValue(name, i), or -1.
int64_t FirstDifference(const Tensor& tensor, int64_t name);
// Posts a receive paid for by `arena`.
absl::StatusOr<Ticket> Post(Communicator& comm, Arena& arena, const TensorSpec& spec, int from,
                            uint64_t tag);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_CONFORMANCE_H_
