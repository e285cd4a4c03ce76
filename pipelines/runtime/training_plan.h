// What a training runs, before there are devices: the model as they hold it, its stages, the
// program.
//
//   PIPELAB_ASSIGN_OR_RETURN(TrainingPlan plan, PlanTraining(graph, batches, options));
//
// Errors: those of training.h for sizes that the scheme or the model cannot serve.
#ifndef PIPELAB_PIPELINES_RUNTIME_TRAINING_PLAN_H_
#define PIPELAB_PIPELINES_RUNTIME_TRAINING_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/data/batch_source.h"
#include "models/graph/layer_spec.h"
#include "pipelines/runtime/training.h"
#include "pipelines/step/step.h"

namespace pipelab {

struct TrainingPlan {
  TensorParallel split;
  ModelGraph graph;  // with the width of the devices' activations, and what the step adds to it
  Step step;         // with a device of the program for every copy
  // Asynchronous schedules take several optimizer steps in a run of the program, each on the mean
  // loss of as many tokens. With replay (ir/flow.h) stages have numbers of their own; `updates`
  // is that of the stages with the most.
  int updates = 1;
  int64_t batch_tokens = 0;                        // of a run, at the loss
  std::vector<int64_t> update_tokens;              // [stage] of an optimizer step
  std::vector<std::vector<int32_t>> version_uses;  // [stage]; asynchronous schedules only
};

absl::StatusOr<TrainingPlan> PlanTraining(const ModelGraph& graph, const BatchSource& batches,
                                          const TrainingOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_TRAINING_PLAN_H_
