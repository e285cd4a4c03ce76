// PPLL (arXiv 2411.12780): a pipeline whose stages learn locally. Each stage has a loss of its own
// and takes what the stage before sends as data, so it runs the backward of a micro-batch right
// after its forward and sends no gradient back.
//
// A device holds one micro-batch at a time (1F1B: P - r). With equal stages of forward f, backward
// b and head a, a step of M micro-batches takes (P - 1) f + M (f + a + b). What a stage sends does
// not depend on its step, so training is bit-equal to the serial local-learning loop.
#include "pipelines/schedules/schemes.h"

namespace pipelab {

absl::StatusOr<Schedule> MakeLocal(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  for (StageGraph::Edge& e : schedule.stages.edges) e.lag = StageGraph::kNoGradient;
  for (int d = 0; d < params.devices; ++d) {
    for (int m = 0; m < params.micro_batches; ++m) {
      schedule.order[d].push_back(Forward(d, m));
      schedule.order[d].push_back(Backward(d, m));
    }
  }
  return schedule;
}

}  // namespace pipelab
