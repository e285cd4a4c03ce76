// A plan on paper: what the simulator says of a training step of its pipeline on a cluster.
//
//   const GroupedModel model = GroupByName(graph);                           // layer_groups.h
//   PIPELAB_ASSIGN_OR_RETURN(StepPrediction p, SimulatePlan(model, pipeline, {&cluster}));
//   p.samples_per_second();
//
// A step is whole: fill and drain, messages over the cluster's links, the sums of the copies'
// gradients and Adam's steps. A device of a stage's group takes the time of its own rows, as many
// as the fullest has; operators are less efficient on few rows, so this is not a d-th of the whole
// micro-batch's time.
#ifndef PIPELAB_PIPELINES_PLANNERS_PLAN_POINT_H_
#define PIPELAB_PIPELINES_PLANNERS_PLAN_POINT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/planners/plan_pipeline.h"
#include "pipelines/step/step.h"

namespace pipelab {

struct PlanMachine {
  const ClusterSpec* cluster = nullptr;  // none: times were measured, and messages take no time
  NumberType type = NumberType::kFp32;
  bool overlap = true;  // CostTable::overlap
};

// InvalidArgument for more devices than the cluster has; NotFound naming the layer and what the
// device lacks.
absl::StatusOr<StepPrediction> SimulatePlan(const GroupedModel& model, const PlanPipeline& pipeline,
                                            const PlanMachine& machine);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_PLAN_POINT_H_
