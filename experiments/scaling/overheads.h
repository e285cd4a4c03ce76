// Where a pipeline's time goes, as shares of devices x step, from its trace and that of the same
// program with equal stages.
//
//   PIPELAB_ASSIGN_OR_RETURN(Overheads o, OverheadsOf(point));
//   o.bubble + o.imbalance                    // what devices wait
//   o.set_up                                  // of the machine's step_set_up
//
// Bubble: what they would still wait if all stages took the same time (fill, drain and transfers).
// Imbalance: what the step is longer than that one. The shares add up to 1.
#ifndef PIPELAB_EXPERIMENTS_SCALING_OVERHEADS_H_
#define PIPELAB_EXPERIMENTS_SCALING_OVERHEADS_H_

#include "absl/status/statusor.h"
#include "pipelines/step/step.h"

namespace pipelab {

struct Overheads {
  double compute = 0, recompute = 0, update = 0, bubble = 0, imbalance = 0;  // 0 to 1
  double set_up = 0;
};

absl::StatusOr<Overheads> OverheadsOf(const StepPrediction& point);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SCALING_OVERHEADS_H_
