// TeraPipe (Li et al., ICML 2021): layers in line in as many stages as there are devices, each
// layer's whole time as equal as can be; then the slices of samples and tokens that go through them
// (token_slicing.h), with the times of the slowest stage. All slices of a batch go forward before
// they go back, so that a device keeps the activations of all; it recomputes where they do not fit.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/planners.h"
#include "pipelines/planners/token_slicing.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status CheckSlicedProblem(const PlanProblem& problem) {
  PIPELAB_RETURN_IF_ERROR(CheckHasPlainVariants(problem, "terapipe"));
  if (problem.tokens > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--planner=terapipe: the input has no times of token slices; it plans models (--model with "
      "--token_step), whose layers take slices");
}

// Stages of the layers in line, all plain or all recomputing; empty: they do not fit.
std::vector<PlanStage> StagesFor(const PlanProblem& problem, int num_stages, bool recompute) {
  const std::vector<int> order = TopologicalOrder(problem);
  std::vector<double> times;
  std::vector<int> chosen;
  for (int v : order) {
    const PlanOperator& o = problem.operators[v];
    const std::vector<PlanVariant>& variants = o.variants.at(1);
    int variant = PlainVariantOf(o);
    for (int i = 0; i < static_cast<int>(variants.size()) && recompute; ++i) {
      if (variants[i].recompute) variant = i;
    }
    chosen.push_back(variant);
    times.push_back(variants[variant].time);
  }
  const std::vector<int> first = PartitionChain(times, num_stages).value();
  std::vector<PlanStage> stages(first.size());
  for (size_t s = 0; s < first.size(); ++s) {
    const size_t end = s + 1 < first.size() ? first[s + 1] : order.size();
    std::vector<std::pair<int, int>> layers;
    for (size_t i = first[s]; i < end; ++i) layers.emplace_back(order[i], chosen[i]);
    std::sort(layers.begin(), layers.end());
    for (const auto& [op, variant] : layers) {
      stages[s].layers.push_back(op);
      stages[s].variants.push_back(variant);
    }
    stages[s].in_flight = problem.micro_batches;
  }
  if (PeakBytes(problem, stages) > problem.memory_bytes) stages.clear();
  return stages;
}

// Each slice takes the slowest stage's time.
SlicingProblem Slicing(const PlanProblem& problem, const std::vector<PlanStage>& stages) {
  SlicingProblem slicing;
  slicing.batch_samples = BatchSamples(problem);
  slicing.stages = static_cast<int64_t>(stages.size());
  slicing.units = static_cast<int>(problem.tokens / problem.token_step);
  slicing.sizes = problem.micro_batch_sizes;
  if (slicing.sizes.empty()) slicing.sizes = {problem.micro_batch_size};
  for (size_t size = 0; size < slicing.sizes.size(); ++size) {
    SliceTimes longest(slicing.units);
    for (int length = 1; length <= slicing.units; ++length) {
      for (int before = 0; before + length <= slicing.units; ++before) {
        double most = 0;
        for (const PlanStage& stage : stages) {
          most = std::max(most, StageSliceTime(problem, stage, size, length, before));
        }
        longest[length - 1].push_back(most);
      }
    }
    slicing.times.push_back(std::move(longest));
  }
  return slicing;
}

}  // namespace

absl::StatusOr<Plan> TeraPipePlan(const PlanProblem& problem, const PlannerOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckSlicedProblem(problem));
  const absl::Time deadline = absl::Now() + options.time_limit;
  PIPELAB_ASSIGN_OR_RETURN(const int num_stages, NumStages(problem, options, problem.size()));
  Plan plan;
  plan.objective = PlanObjective::kSliceTime;
  plan.stages = StagesFor(problem, num_stages, false);
  if (plan.stages.empty()) plan.stages = StagesFor(problem, num_stages, true);
  if (plan.stages.empty()) {
    SetState(true, false, &plan);
    return plan;
  }
  const TokenSlicing slicing = SliceBatch(Slicing(problem, plan.stages), deadline);
  if (slicing.micro_batches.empty()) plan.stages.clear();  // the sizes do not make the batch
  for (const SlicedMicroBatch& micro_batch : slicing.micro_batches) {
    PlanSlices slices;
    slices.micro_batch_size = micro_batch.micro_batch_size;
    for (int length : micro_batch.lengths) slices.tokens.push_back(length * problem.token_step);
    plan.slices.push_back(std::move(slices));
  }
  if (plan.has_plan()) plan.value = slicing.time;
  SetState(slicing.complete, !slicing.complete, &plan);
  return plan;
}

}  // namespace pipelab
