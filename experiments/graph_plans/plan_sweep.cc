#include "experiments/graph_plans/plan_sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/report/table.h"
#include "pipelines/planners/model_problem.h"
#include "pipelines/planners/planners.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

std::vector<int64_t> PowersOfTwo(int64_t least, int64_t most) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= most; size *= 2) {
    if (size >= least) sizes.push_back(size);
  }
  return sizes;
}

// One after the other, as they are listed.
void PutInLine(PlanProblem* problem) {
  std::set<std::pair<int, int>> there;
  for (const PlanEdge& edge : problem->edges) there.emplace(edge.from, edge.to);
  for (int v = 0; v + 1 < problem->size(); ++v) {
    if (there.count({v, v + 1}) == 0) problem->edges.push_back({v, v + 1, 0});
  }
}

void Keep(const PlanPipeline& pipeline, const StepPrediction& point, PlanRun* run) {
  run->throughput = point.samples_per_second();
  run->memory = point.largest_device;
  run->stages = pipeline.partition.num_stages();
  run->depth = pipeline.Depth();
  run->bubble = point.bubble;
  run->most_copies = 0;
  run->largest_micro_batch = 0;
  for (int s = 0; s < run->stages; ++s) {
    run->largest_micro_batch = std::max(run->largest_micro_batch, pipeline.StageSamples(s));
    run->most_copies = std::max(run->most_copies, pipeline.Copies(s));
  }
}

// Keeps what is faster than what is there and fits, or says why not.
void Try(const StudyNet& net, const Plan& plan, const PlanProblem& problem,
         const PlanPipelineOptions& pipeline_options, const PlanSweepOptions& options,
         PlanRun* run) {
  const auto missing = [&](std::string why) {
    if (run->throughput == 0) run->missing = std::move(why);
  };
  const absl::StatusOr<PlanPipeline> pipeline =
      MakePlanPipeline(net.model.graph, problem, plan, pipeline_options);
  if (!pipeline.ok()) return missing(std::string(pipeline.status().message()));
  const absl::StatusOr<StepPrediction> point =
      SimulatePlan(net.model, *pipeline, {options.cluster, options.type});
  if (!point.ok()) return missing(std::string(point.status().message()));
  const Bytes room = options.cluster->device.memory.value;
  if (point->largest_device > room) {
    return missing(
        absl::StrFormat("needs %.1f GiB of %.1f", ToGiB(point->largest_device), ToGiB(room)));
  }
  if (point->samples_per_second() <= run->throughput) return;
  run->missing.clear();
  Keep(*pipeline, *point, run);
}

bool HasSizes(const Plan& plan) {
  return std::all_of(plan.stages.begin(), plan.stages.end(), [](const PlanStage& stage) {
    return stage.micro_batch_size > 0 || stage.data == 1;
  });
}

}  // namespace

double ThroughputRatio(const PlanRun* a, const PlanRun* b) {
  return a == nullptr || b == nullptr ? 0 : a->throughput / b->throughput;
}

int64_t BatchOf(const StudyNet& net, const PlanSweepOptions& options) {
  const double samples = static_cast<double>(net.samples_per_device) * options.batch_factor;
  return std::max<int64_t>(1, std::llround(samples)) * options.devices;
}

PlanMethod PipeDreamMethod() { return {"PipeDream", "pipedream", PlanObjective::kPipeDream}; }
PlanMethod PipeDreamOnceAStepMethod() {
  PlanMethod method = PipeDreamMethod();
  method.name = "PipeDream, sums once a step";
  method.sums_once_per_step = true;
  return method;
}
PlanMethod PiperMethod() { return {"Piper", "piper", PlanObjective::kStageTime}; }
PlanMethod GraphPipeMethod() {
  PlanMethod method{"GraphPipe", "graphpipe", PlanObjective::kGraphBatchTime};
  method.chain = false;
  method.chooses_sizes = true;
  return method;
}
PlanMethod SequentialMethod() {
  PlanMethod method{"sequential", "graphpipe", PlanObjective::kGraphBatchTime};
  method.line = true;
  method.chooses_sizes = true;
  return method;
}

const PlanRun* PlanSweep::best() const {
  const PlanRun* best = nullptr;
  for (const PlanRun& run : runs) {
    if (!run.missing.empty()) continue;
    if (best == nullptr || run.throughput > best->throughput) best = &run;
  }
  return best;
}

const PlanRun* PlanSweep::best_of_one_size() const {
  const PlanRun* best = nullptr;
  for (const PlanRun& run : runs) {
    if (!run.missing.empty() || run.micro_batch_size == 0) continue;
    if (best == nullptr || run.throughput > best->throughput) best = &run;
  }
  return best;
}

const PlanRun* PlanSweep::Find(int64_t micro_batch_size) const {
  for (const PlanRun& run : runs) {
    if (run.micro_batch_size == micro_batch_size && run.missing.empty()) return &run;
  }
  return nullptr;
}

int PlanSweep::Stopped() const {
  return static_cast<int>(
      std::count_if(runs.begin(), runs.end(), [](const PlanRun& run) { return run.stopped; }));
}

std::string PlanSweep::WhyNone() const {
  return runs.empty() ? "no size of micro-batches" : runs.front().missing;
}

absl::StatusOr<PlanProblem> StudyProblem(const StudyNet& net, const PlanMethod& method,
                                         int64_t samples, const PlanSweepOptions& options) {
  ModelProblemOptions problem_options;
  problem_options.type = options.type;
  problem_options.devices = options.devices;
  problem_options.micro_batch_size = samples;
  problem_options.batch_samples = BatchOf(net, options);
  problem_options.group_of_layer = net.model.group_of_layer;
  if (method.chooses_sizes)
    problem_options.micro_batch_sizes = PowersOfTwo(1, BatchOf(net, options));
  // None of the paper's planners is said to have recomputed.
  problem_options.recompute = false;
  PIPELAB_ASSIGN_OR_RETURN(PlanProblem problem,
                           ModelProblem(net.model.graph, *options.cluster, problem_options));
  if (method.line) PutInLine(&problem);
  problem.objective = method.objective;
  if (method.objective == PlanObjective::kPipeDream) {
    // Its planner knows no memory limit on several levels of a network. What goes through its
    // pipeline is a mini-batch, after which gradients are summed.
    const double sums = method.sums_once_per_step ? static_cast<double>(problem.micro_batches) : 1;
    for (PlanOperator& op : problem.operators) {
      for (PlanVariant& variant : op.variants.at(1)) variant.parameter_bytes /= sums;
    }
    problem.memory_bytes = std::numeric_limits<double>::infinity();
  }
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
  pipeline_options.micro_batch_size = problem.micro_batch_size;
  pipeline_options.chain = chain;
  run.missing = "no way to run it";
  for (const CopyRule copies : {CopyRule::kTakeTurns, CopyRule::kShareRows}) {
    for (const PlanPlacement placement : {PlanPlacement::kByLayer, PlanPlacement::kLargestFirst}) {
      pipeline_options.copies = copies;
      pipeline_options.placement = placement;
      Try(net, plan, problem, pipeline_options, options, &run);
    }
    if (HasSizes(plan)) break;  // nothing is left open
  }
  return run;
}

absl::StatusOr<PlanSweep> SweepPlans(const StudyNet& net, const PlanMethod& method,
                                     const PlanSweepOptions& options) {
  const int64_t batch = BatchOf(net, options);
  std::vector<int64_t> sizes = PowersOfTwo(batch / options.most_micro_batches, batch);
  if (method.chooses_sizes) sizes.push_back(0);
  PlanSweep sweep;
  for (const int64_t size : sizes) {
    PlannerOptions planner;
    planner.time_limit = options.time_limit;
    planner.most_steps = options.most_steps;
    if (method.chooses_sizes) planner.micro_batch_size = size;
    PIPELAB_ASSIGN_OR_RETURN(const PlanProblem problem,
                             StudyProblem(net, method, method.chooses_sizes ? 1 : size, options));
    PIPELAB_ASSIGN_OR_RETURN(const Plan plan, MakePlan(method.planner, problem, planner));
    sweep.search_time += plan.search_time;
    sweep.runs.push_back(RunPlan(net, problem, plan, method.chain, options));
    sweep.runs.back().micro_batch_size = size;
    // By the clock: a planner that gives up for another reason says kTimeLimit, too.
    sweep.runs.back().stopped = plan.search_time >= options.time_limit;
  }
  return sweep;
}

}  // namespace pipelab
