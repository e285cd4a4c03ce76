// A plan of a model as a pipeline: the layers and devices of each stage, and the schedule that the
// simulator and the runtime run.
//
//   PlanPipelineOptions options;
//   options.batch_samples = 128;  options.micro_batch_size = 4;
//   PIPELAB_ASSIGN_OR_RETURN(PlanPipeline p, MakePlanPipeline(graph, problem, plan, options));
//   SimulatePlan(model, p, machine);                                  // plan_point.h
//
// The schedule is that of the scheme `graph`: kFkB on the stages' graph, with as many micro-batches
// in flight as its order needs. A stage runs micro-batches of the size that the plan gives it, and
// its `data` copies divide each by rows. Planners without sizes of their own (Piper, PipeDream)
// mean copies that take whole micro-batches in turn: d of them are then one micro-batch of d times
// the samples (CopyRule). Devices are numbered along the stages, stage by stage.
//
// The problem's operators know their layers (model_problem.h). A stage in which some layer
// recomputes rebuilds all of its activations.
#ifndef PIPELAB_PIPELINES_PLANNERS_PLAN_PIPELINE_H_
#define PIPELAB_PIPELINES_PLANNERS_PLAN_PIPELINE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

// Which devices a stage takes. Those of a stage are consecutive, so that stages of a power of two
// are within one node where larger ones come first.
enum class PlanPlacement : uint8_t {
  kByLayer,       // in the order of the stages' first layers: branch after branch
  kLargestFirst,  // of as many devices: by layer
};

// What copies do of a stage without a size of its own.
enum class CopyRule : uint8_t {
  kTakeTurns,  // each has a whole micro-batch: a stage of d runs the next power of two at a time
  kShareRows,  // each has a d-th of a micro-batch
};

struct PlanPipelineOptions {
  int64_t batch_samples = 1;     // of a step
  int64_t micro_batch_size = 1;  // where the plan gives no size
  CopyRule copies = CopyRule::kTakeTurns;
  int kfkb = 0;  // k of kFkB; 0: 1
  // Sequential pipelines: stage s also waits for stage s - 1, whatever it takes from it, and as
  // many micro-batches are in flight.
  bool chain = false;
  PlanPlacement placement = PlanPlacement::kByLayer;
};

struct PlanPipeline {
  ModelPartition partition;
  // Its edges are the partition's and, after these, those that a chain needs besides.
  Schedule schedule;
  int64_t micro_batch_size = 1;  // of the smallest micro-batches

  // Samples of a stage's micro-batch, over its copies, and the most that one of these has.
  int64_t StageSamples(int stage) const {
    return micro_batch_size * schedule.MicroBatchSize(stage);
  }
  int64_t Copies(int stage) const {
    return static_cast<int64_t>(schedule.placement.groups[0][stage].size());
  }
  int64_t DeviceSamples(int stage) const {
    return (StageSamples(stage) + Copies(stage) - 1) / Copies(stage);
  }
  int Depth() const;  // stages on the longest path
};

// InvalidArgument: a plan without stages, of operators without layers, that leaves out a layer or
// has one twice, whose edges lead back, with tensor parallelism; sizes that do not divide.
absl::StatusOr<PlanPipeline> MakePlanPipeline(const ModelGraph& graph, const PlanProblem& problem,
                                              const Plan& plan, const PlanPipelineOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_PLAN_PIPELINE_H_
