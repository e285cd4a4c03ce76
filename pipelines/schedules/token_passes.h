// The schedule of decoding: micro-batches are passes of tokens, which every device runs in order.
//
//   Schedule s = TokenPasses(/*devices=*/2, {-1, -1, 0, 1});   // pass 2 takes pass 0's tokens
//
// Stages are devices in a chain; an edge carries tokens from the last stage to the first.
#ifndef PIPELAB_PIPELINES_SCHEDULES_TOKEN_PASSES_H_
#define PIPELAB_PIPELINES_SCHEDULES_TOKEN_PASSES_H_

#include <cstdint>
#include <vector>

#include "pipelines/ir/schedule.h"

namespace pipelab {

// `carried`: one for each pass (Schedule::carried). The schedule has no name yet.
Schedule TokenPasses(int devices, std::vector<int32_t> carried);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_TOKEN_PASSES_H_
