// What a stage of a swarm costs: times of its layers on a device, bytes of its messages.
//
//   PIPELAB_ASSIGN_OR_RETURN(ClusterSpec t4, LoadCluster("--cluster", "preemptible-t4"));
//   PIPELAB_ASSIGN_OR_RETURN(SwarmStage stage,
//                            BlockStage({.hidden = 12288}, {t4.device, NumberType::kFp16}));
//
// Times are layer_times.h's. A forward's request is the stage's input and its result the output; a
// backward's request is the input and the output's gradient, its result the input's gradient. It
// runs the forward again first.
//
// Messages have the device's numbers, or 8 bits for each and a step for each 256 of them, as the
// running swarm sends them (kernels/messages/int8_blocks.h).
#ifndef PIPELAB_PIPELINES_SWARM_SWARM_COSTS_H_
#define PIPELAB_PIPELINES_SWARM_SWARM_COSTS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/swarm/swarm.h"
#include "tools/base/units.h"

namespace pipelab {

struct BlockStageSizes {
  int64_t blocks = 1;  // attention and feed-forward of a GPT, each
  int64_t hidden = 0;  // a multiple of 64: heads have 64
  int64_t tokens = 2048;
  int64_t samples = 1;     // of a micro-batch
  bool eight_bits = true;  // messages
};

// State is values and two moments of 4 bytes for each parameter (Adam, LAMB); gradients are
// averaged in 2 bytes. Errors are BuildGpt's and those of layer_times.h.
absl::StatusOr<SwarmStage> BlockStage(const BlockStageSizes& sizes, const Machine& machine);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_SWARM_COSTS_H_
