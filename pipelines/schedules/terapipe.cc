// TeraPipe (Li et al., ICML 2021): the samples of a micro-batch go through the stages in slices of
// their tokens, one after the other, because causal attention looks back only.
//
// A GPipe of M S items, the slices of all micro-batches: forwards in token order, then backwards,
// each micro-batch's slices from the last to the first. With t_i the time of item i, a pass over K
// stages takes sum t_i + (K - 1) max t_j. The paper's pictures run the micro-batches backwards in
// reverse order; here they keep theirs, as in gpipe.cc. Lengths of slices are no part of a
// schedule.
#include "pipelines/schedules/schemes.h"

namespace pipelab {
namespace {

Action Slice(Action a, int slice) {
  a.slice = static_cast<int16_t>(slice);
  return a;
}

}  // namespace

absl::StatusOr<Schedule> MakeTeraPipe(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  schedule.num_slices = params.slices > 0 ? params.slices : kDefaultSlices;
  for (int d = 0; d < params.devices; ++d) {
    for (int m = 0; m < params.micro_batches; ++m) {
      for (int i = 0; i < schedule.num_slices; ++i) {
        schedule.order[d].push_back(Slice(Forward(d, m), i));
      }
    }
    for (int m = 0; m < params.micro_batches; ++m) {
      for (int i = schedule.num_slices - 1; i >= 0; --i) {
        schedule.order[d].push_back(Slice(Backward(d, m), i));
      }
    }
  }
  return schedule;
}

}  // namespace pipelab
