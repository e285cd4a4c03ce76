#include "experiments/commands/plan_timeline.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/report/timeline_text.h"
#include "pipelines/planners/plan_pipeline.h"
#include "pipelines/planners/plan_point.h"
#include "pipelines/step/step_config.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kColumns = 100;
constexpr int kMostDevices = 64;  // that are drawn

struct SimulatedPlan {
  PlanPipeline pipeline;
  StepPrediction step;
};

absl::StatusOr<SimulatedPlan> Simulated(const Plan& plan, const PlanProblem& problem,
                                        const ModelOnCluster& on) {
  const ModelGraph& graph = on.model().graph;
  PlanPipelineOptions sizes;
  sizes.micro_batch_size = problem.micro_batch_size;
  sizes.batch_samples = problem.micro_batch_size * problem.micro_batches;
  PIPELAB_ASSIGN_OR_RETURN(PlanPipeline pipeline, MakePlanPipeline(graph, problem, plan, sizes));
  const PlanMachine machine = {on.step().cluster, on.step().type};
  PIPELAB_ASSIGN_OR_RETURN(StepPrediction step, SimulatePlan(graph, pipeline, machine));
  return SimulatedPlan{std::move(pipeline), std::move(step)};
}

double Gib(const StepPrediction& step) {
  return static_cast<double>(step.largest_device.value()) / (1 << 30);
}

}  // namespace

absl::StatusOr<PlanSimulator> PlanSimulator::Make(const PlanProblem& problem) {
  PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<ModelOnCluster> on, LoadModelOnCluster(StepConfig()));
  return PlanSimulator(problem, std::move(on));
}

std::string PlanSimulator::Timeline(const Plan& plan) const {
  const absl::StatusOr<SimulatedPlan> run = Simulated(plan, *problem_, *on_);
  if (!run.ok()) return absl::StrCat("\nnot simulated: ", run.status().message(), "\n");
  const StepPrediction& step = run->step;
  std::string text = absl::StrFormat(
      "\nsimulated, stages %d deep: a step of %d samples takes %.6g ms, %.6g samples/s; fullest "
      "device %.3f GiB\n",
      run->pipeline.Depth(), step.step.config.batch(), ToSeconds(step.trace.makespan) * 1e3,
      step.samples_per_second(), Gib(step));
  if (run->pipeline.schedule.num_devices() <= kMostDevices) {
    absl::StrAppend(&text, TimelineText(step.trace, kColumns));
  }
  return text;
}

absl::StatusOr<double> PlanSimulator::StepSeconds(const Plan& plan) const {
  PIPELAB_ASSIGN_OR_RETURN(const SimulatedPlan run, Simulated(plan, *problem_, *on_));
  if (static_cast<double>(run.step.largest_device.value()) > problem_->memory_bytes) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "needs %.3f GiB of a device's %.3f", Gib(run.step), problem_->memory_bytes / (1 << 30)));
  }
  return ToSeconds(run.step.trace.makespan);
}

}  // namespace pipelab
