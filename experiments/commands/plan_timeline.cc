#include "experiments/commands/plan_timeline.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/commands/step_input.h"
#include "experiments/report/timeline_text.h"
#include "pipelines/planners/plan_pipeline.h"
#include "pipelines/planners/plan_point.h"
#include "pipelines/step/step_config.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kColumns = 100;
constexpr int kMostDevices = 64;  // that are drawn

std::string NotRun(const absl::Status& status) {
  return absl::StrCat("\nnot simulated: ", status.message(), "\n");
}

}  // namespace

absl::StatusOr<std::string> PlanTimeline(const Plan& plan, const PlanProblem& problem) {
  PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<ModelOnCluster> on,
                           LoadModelOnCluster(StepConfig()));
  const ModelGraph& graph = on->model().graph;
  PlanPipelineOptions sizes;
  sizes.micro_batch_size = problem.micro_batch_size;
  sizes.batch_samples = problem.micro_batch_size * problem.micro_batches;
  const absl::StatusOr<PlanPipeline> pipeline = MakePlanPipeline(graph, problem, plan, sizes);
  if (!pipeline.ok()) return NotRun(pipeline.status());
  const PlanMachine machine = {on->step().cluster, on->step().type};
  const absl::StatusOr<StepPrediction> point = SimulatePlan(graph, *pipeline, machine);
  if (!point.ok()) return NotRun(point.status());
  std::string text = absl::StrFormat(
      "\nsimulated, stages %d deep: a step of %d samples takes %.6g ms, %.6g samples/s; fullest "
      "device %.3f GiB\n",
      pipeline->Depth(), point->step.config.batch(), ToSeconds(point->step_time) * 1e3,
      point->samples_per_second(), static_cast<double>(point->largest_device.value()) / (1 << 30));
  if (pipeline->schedule.num_devices() <= kMostDevices) {
    absl::StrAppend(&text, TimelineText(point->trace, kColumns));
  }
  return text;
}

}  // namespace pipelab
