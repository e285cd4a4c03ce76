// Where the time of a grid's step goes: the program simulated again with parts of the machine made
// free.
//
//   PIPELAB_ASSIGN_OR_RETURN(StepBreakdown b, BreakDown(model, point));
//   b.idle;       // share of devices x step, 0 to 1
//
// Data: the time that the step saves if reductions and gathers take none; pipeline: what it then
// saves if messages take none; tensor: the compute's collectives of tensor-parallel groups. What
// devices still wait is idle: the fill and drain of the pipeline, and stages of unequal time. So
// what compute hides is not counted.
#ifndef PIPELAB_PIPELINES_SEARCH_BREAKDOWN_H_
#define PIPELAB_PIPELINES_SEARCH_BREAKDOWN_H_

#include "absl/status/statusor.h"
#include "pipelines/step/step.h"

namespace pipelab {

struct StepBreakdown {
  double compute = 0, recompute = 0, tensor = 0, step = 0, idle = 0, pipeline = 0, data = 0;
};

absl::StatusOr<StepBreakdown> BreakDown(const StepModel& model, const StepPrediction& point);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_BREAKDOWN_H_
