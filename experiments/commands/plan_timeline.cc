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
  const auto predict = [&](const StepModel& model) {
    return SimulatePlan(graph, *pipeline, {model.cluster, model.type});
  };
  const absl::StatusOr<StepPrediction> point = predict(on->step());
  if (!point.ok()) return NotRun(point.status());
  PIPELAB_ASSIGN_OR_RETURN(const std::string note, CalibrationNote(on->step(), predict));
  std::string text = note.empty() ? "" : absl::StrCat("\n", note);
  absl::StrAppendFormat(
      &text,
      "\nsimulated, stages %d deep: a step of %d samples takes %.6g ms, %.6g samples/s; fullest "
      "device %.3f GiB\n",
      pipeline->Depth(), point->step.config.batch(), ToSeconds(point->step_time) * 1e3,
      point->samples_per_second(), static_cast<double>(point->largest_device.value()) / (1 << 30));
  absl::StrAppend(&text, PartsNote(*pipeline));
  if (pipeline->schedule.num_devices() <= kMostDevices) {
    absl::StrAppend(&text, TimelineText(point->trace, kColumns));
  }
  return text;
}

}  // namespace pipelab
