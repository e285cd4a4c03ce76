#include "experiments/plan_commands/plan_timeline.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/commands/step_input.h"
#include "experiments/report/timeline_text.h"
#include "pipelines/planners/plan_pipeline.h"
#include "pipelines/planners/plan_point.h"
#include "pipelines/step/model_on_cluster.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kTimelineColumns = 100;
constexpr int kMostDrawnDevices = 64;

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
  PIPELAB_ASSIGN_OR_RETURN(StepPrediction step, SimulatePlan(on.model(), pipeline, machine));
  return SimulatedPlan{std::move(pipeline), std::move(step)};
}

double Gib(const StepPrediction& step) {
  return static_cast<double>(step.largest_device.value()) / (1 << 30);
}

// Planners divide micro-batches among copies into parts of samples; devices have whole ones.
std::string PartsNote(const PlanPipeline& pipeline) {
  for (int s = 0; s < pipeline.schedule.num_stages(); ++s) {
    const int64_t samples = pipeline.StageSamples(s), copies = pipeline.Copies(s);
    if (samples % copies == 0) continue;
    return absl::StrCat("stage ", s, ": ", copies, " copies cannot share ", samples,
                        samples == 1 ? " sample" : " samples",
                        " evenly; the planner counts parts of samples, the simulated step up to ",
                        pipeline.DeviceSamples(s), " per copy\n");
  }
  return "";
}

// MakePlanPipeline makes the same of both.
bool RunAlike(const PlanStage& a, const PlanStage& b) {
  return a.data == b.data && a.tensor == b.tensor && a.on_processor == b.on_processor &&
         a.micro_batch_size == b.micro_batch_size && a.layers == b.layers &&
         a.variants == b.variants;
}

}  // namespace

std::string PlanSimulator::Timeline(const Plan& plan) const {
  const absl::StatusOr<SimulatedPlan> run = Simulated(plan, *problem_, *on_);
  if (!run.ok()) return absl::StrCat("\nnot simulated: ", run.status().message(), "\n");
  const StepPrediction& step = run->step;
  const absl::StatusOr<std::string> note =
      CalibrationNote(on_->step(), step.step_time, [&](const StepModel& model) {
        return SimulatePlan(on_->model(), run->pipeline, {model.cluster, model.type});
      });
  if (!note.ok()) return absl::StrCat("\nnot simulated: ", note.status().message(), "\n");
  std::string text = note->empty() ? "" : absl::StrCat("\n", *note);
  absl::StrAppendFormat(
      &text,
      "\nsimulated, stages %d deep: a step of %d samples takes %.6g ms, %.6g samples/s; fullest "
      "device %.3f GiB\n",
      run->pipeline.Depth(), step.step.config.batch(), ToSeconds(step.step_time) * 1e3,
      step.samples_per_second(), Gib(step));
  absl::StrAppend(&text, PartsNote(run->pipeline));
  if (run->pipeline.schedule.num_devices() <= kMostDrawnDevices) {
    absl::StrAppend(&text, TimelineText(step.step.program, step.trace, kTimelineColumns));
  }
  return text;
}

absl::StatusOr<double> PlanSimulator::StepSeconds(const Plan& plan) {
  for (const auto& [stages, seconds] : known_) {
    if (std::equal(stages.begin(), stages.end(), plan.stages.begin(), plan.stages.end(),
                   RunAlike)) {
      return seconds;
    }
  }
  return known_.emplace_back(plan.stages, SimulatedSeconds(plan)).second;
}

absl::StatusOr<double> PlanSimulator::SimulatedSeconds(const Plan& plan) const {
  PIPELAB_ASSIGN_OR_RETURN(const SimulatedPlan run, Simulated(plan, *problem_, *on_));
  if (static_cast<double>(run.step.largest_device.value()) > problem_->memory_bytes) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "needs %.3f GiB of a device's %.3f", Gib(run.step), problem_->memory_bytes / (1 << 30)));
  }
  return ToSeconds(run.step.step_time);
}

}  // namespace pipelab
