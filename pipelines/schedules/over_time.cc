// PARTIME (arXiv 2210.09147): a pipeline over time. A sample of a stream, a micro-batch here,
// enters at each tick, and at each tick every stage does a forward, a backward and an optimizer
// step, on the newest weights. The backward of sample m uses the gradient that the next stage made
// in the tick before, which is that of sample m - 2: right when samples change slowly. So at stage
// k of n an update comes from the loss of sample m - 2 (n - 1 - k). Nothing is stashed: one sample
// and one version of the weights a stage, whatever the length of the stream.
//
// The first two samples meet no gradient (zeros) but at the last stage.
//
// Inference is the same without backwards and steps: a sample enters at each tick, of one forward.
#include <algorithm>

#include "pipelines/schedules/pipedream.h"

namespace pipelab {

namespace {

constexpr int kLag = 2;  // a boundary: there in one tick, and back in the next

}  // namespace

absl::Status CheckOverTime(const SchemeParams& params) { return CheckUpdates(params, 1); }

absl::StatusOr<Schedule> MakeOverTime(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  // A gradient that comes after the stream's end is as good as none.
  for (StageGraph::Edge& e : schedule.stages.edges) {
    e.gradient = Reads::Late(std::min(kLag, params.micro_batches));
  }
  for (int d = 0; d < params.devices; ++d) {
    for (int m = 0; m < params.micro_batches; ++m) {
      Action forward = Forward(d, m), backward = Backward(d, m);
      forward.version = backward.version = static_cast<int16_t>(m);
      schedule.order[d].push_back(forward);
      schedule.order[d].push_back(backward);
      schedule.order[d].push_back(
          {ActionKind::kStep, static_cast<int16_t>(d), 0, 0, static_cast<int16_t>(m + 1)});
    }
  }
  return schedule;
}

absl::Status CheckOverTimeInference(const SchemeParams& params) {
  if (!params.recompute) return absl::OkStatus();
  return absl::InvalidArgumentError("--recompute=full: there are no backwards to recompute for");
}

absl::StatusOr<Schedule> MakeOverTimeInference(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  schedule.forward_only = true;
  for (int d = 0; d < params.devices; ++d) {
    for (int m = 0; m < params.micro_batches; ++m) schedule.order[d].push_back(Forward(d, m));
  }
  return schedule;
}

}  // namespace pipelab
