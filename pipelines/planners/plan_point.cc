#include "pipelines/planners/plan_point.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<StepPrediction> SimulatePlan(const GroupedModel& model, const PlanPipeline& pipeline,
                                            const PlanMachine& machine) {
  StepModel on;
  on.model = &model;
  on.cluster = machine.cluster;
  on.type = machine.type;
  if (machine.cluster == nullptr) on.step_flops_per_parameter = 0;
  const Schedule& schedule = pipeline.schedule;
  if (machine.cluster != nullptr && schedule.num_devices() > machine.cluster->max_devices()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cluster ", machine.cluster->name, " has ", machine.cluster->max_devices(),
                     " devices, not the plan's ", schedule.num_devices()));
  }
  StepParts parts;
  parts.model = &on;
  parts.partition = &pipeline.partition;
  parts.schedule = schedule;
  parts.micro_batch_size = pipeline.micro_batch_size;
  parts.lowering.stages = schedule.stages;  // a chain's edges come after the partition's
  StepConfig& c = parts.config;
  c.scheme = schedule.name;
  c.pipeline = schedule.num_devices();
  c.micro_batch_size = pipeline.micro_batch_size;
  c.micro_batches = schedule.num_micro_batches;
  c.overlap_pipeline = machine.overlap;
  PIPELAB_ASSIGN_OR_RETURN(Step step, AssembleStep(std::move(parts)));
  step.model_flops = StepCache(on).ModelFlops(c.batch());
  return Predict(std::move(step));
}

}  // namespace pipelab
