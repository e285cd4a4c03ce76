#include "experiments/graph_plans/plan_sweep.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pipelines/plan/model_problem.h"
#include "pipelines/plan/planners.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

int64_t BatchOf(const StudyNet& net, const PlanSweepOptions& options) {
  return net.samples_a_device * options.devices;
}

double GiB(Bytes bytes) { return static_cast<double>(bytes.value()) / (1024.0 * 1024 * 1024); }

void Keep(const PlanPipeline& pipeline, const PlanPoint& point, PlanRun* run) {
  run->throughput = point.samples_per_second();
  run->memory = point.largest_device();
  run->stages = pipeline.partition.num_stages();
  run->depth = pipeline.Depth();
  run->largest_micro_batch = 0;
  for (int s = 0; s < run->stages; ++s) {
    run->largest_micro_batch = std::max(run->largest_micro_batch, pipeline.StageSamples(s));
  }
}

}  // namespace

PlanMethod PipeDreamMethod() { return {"PipeDream", "pipedream", PlanObjective::kPipeDream}; }
PlanMethod PiperMethod() { return {"Piper", "piper", PlanObjective::kStageTime}; }
PlanMethod GraphPipeMethod() {
  return {"GraphPipe", "graphpipe", PlanObjective::kStageTime, /*chain=*/false,
          /*chooses_sizes=*/true};
}

const PlanRun* PlanSweep::best() const {
  const PlanRun* best = nullptr;
  for (const PlanRun& run : runs) {
    if (!run.missing.empty()) continue;
    if (best == nullptr || run.throughput > best->throughput) best = &run;
  }
  return best;
}

const PlanRun* PlanSweep::Find(int64_t micro_batch_samples) const {
  for (const PlanRun& run : runs) {
    if (run.micro_batch_samples == micro_batch_samples && run.missing.empty()) return &run;
  }
  return nullptr;
}

std::string PlanSweep::WhyNone() const {
  return runs.empty() ? "no size of micro-batches" : runs.front().missing;
}

absl::StatusOr<PlanProblem> StudyProblem(const StudyNet& net, const PlanMethod& method,
                                         const std::vector<int64_t>& sizes,
                                         const PlanSweepOptions& options) {
  ModelProblemOptions problem_options;
  problem_options.type = options.type;
  problem_options.devices = options.devices;
  problem_options.samples = sizes.front();
  problem_options.batch_samples = BatchOf(net, options);
  problem_options.group_of_layer = net.model.group_of_layer;
  // None of the paper's planners is said to have recomputed.
  problem_options.recompute = false;
  if (method.chooses_sizes) problem_options.sample_sizes = sizes;
  PIPELAB_ASSIGN_OR_RETURN(PlanProblem problem,
                           ModelProblem(net.model.graph, *options.cluster, problem_options));
  problem.objective = method.objective;
  PIPELAB_RETURN_IF_ERROR(FinishProblem(&problem, net.name));
  return problem;
}

PlanRun RunPlan(const StudyNet& net, const PlanProblem& problem, const Plan& plan, bool chain,
                const PlanSweepOptions& options) {
  PlanRun run;
  run.plan = plan;
  run.state = plan.state;
  run.search_time = plan.search_time;
  run.batch_samples = BatchOf(net, options);
  if (!plan.has_plan()) {
    run.missing = absl::StrCat("no plan: ", PlanStateName(plan.state));
    return run;
  }
  PlanPipelineOptions pipeline_options;
  pipeline_options.batch_samples = run.batch_samples;
  pipeline_options.micro_batch_samples = problem.samples;
  pipeline_options.chain = chain;
  // The better of two ways to put stages on nodes.
  for (const PlanPlacement placement : {PlanPlacement::kByLayer, PlanPlacement::kLargestFirst}) {
    pipeline_options.placement = placement;
    const absl::StatusOr<PlanPipeline> pipeline =
        MakePlanPipeline(net.model.graph, problem, plan, pipeline_options);
    if (!pipeline.ok()) {
      run.missing = std::string(pipeline.status().message());
      return run;
    }
    const absl::StatusOr<PlanPoint> point =
        SimulatePlan(net.model.graph, *pipeline, {options.cluster, options.type});
    if (!point.ok()) {
      run.missing = std::string(point.status().message());
      return run;
    }
    if (point->samples_per_second() > run.throughput) Keep(*pipeline, *point, &run);
  }
  const Bytes room = options.cluster->device.memory.value;
  if (run.memory > room) {
    run.missing = absl::StrFormat("needs %.1f GiB of %.1f", GiB(run.memory), GiB(room));
  }
  return run;
}

absl::StatusOr<PlanSweep> SweepPlans(const StudyNet& net, const PlanMethod& method,
                                     const PlanSweepOptions& options) {
  std::vector<int64_t> sizes = options.sizes;
  for (int64_t b = 1; options.sizes.empty() && b <= BatchOf(net, options); b *= 2) {
    sizes.push_back(b);
  }
  PlannerOptions planner;
  planner.time_limit = options.time_limit;
  PlanSweep sweep;
  const auto add = [&](const std::vector<int64_t>& asked) -> absl::Status {
    PIPELAB_ASSIGN_OR_RETURN(const PlanProblem problem, StudyProblem(net, method, asked, options));
    PIPELAB_ASSIGN_OR_RETURN(const Plan plan, MakePlan(method.planner, problem, planner));
    sweep.runs.push_back(RunPlan(net, problem, plan, method.chain, options));
    sweep.runs.back().micro_batch_samples = asked.size() == 1 ? asked[0] : 0;
    sweep.search_time += plan.search_time;
    return absl::OkStatus();
  };
  for (const int64_t size : sizes) PIPELAB_RETURN_IF_ERROR(add({size}));
  if (method.chooses_sizes && sizes.size() > 1) PIPELAB_RETURN_IF_ERROR(add(sizes));
  return sweep;
}

}  // namespace pipelab
