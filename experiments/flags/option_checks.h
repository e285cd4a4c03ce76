// What a training experiment refuses before it fetches or trains anything, naming option and value.
//
//   PIPELAB_RETURN_IF_ERROR(CheckRange("--steps", steps, 1, kMostSteps));
//   PIPELAB_RETURN_IF_ERROR(CheckMemory(graph, samples));         // more than the machine has
//
// Every error is InvalidArgument. The upper limits are far above what trains on one machine and far
// below where products of sizes would overflow.
#ifndef PIPELAB_EXPERIMENTS_FLAGS_OPTION_CHECKS_H_
#define PIPELAB_EXPERIMENTS_FLAGS_OPTION_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr int64_t kMostSteps = 1'000'000;
inline constexpr int64_t kMostSamples = 1 << 16;       // a micro-batch
inline constexpr int64_t kMostMicroBatches = 1 << 12;  // their traces are kept

// "--steps=0: must be from 1 to 1000000".
absl::Status CheckRange(absl::string_view option, int64_t value, int64_t least, int64_t most);

// Parameters with gradients and Adam's two moments, and one micro-batch's activations: the least
// that training holds. Refused where this machine's memory is less.
absl::Status CheckMemory(const ModelGraph& graph, int64_t micro_batch_size);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_FLAGS_OPTION_CHECKS_H_
