#include "pipelines/planners/plan_costs.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/planners/batch_time.h"
#include "pipelines/planners/placement_units.h"
#include "pipelines/planners/plan_groups.h"
#include "pipelines/planners/stage_sums.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

struct Boundary {
  double bytes = 0;
  int edges = 0;
};

Boundary BoundaryOf(const PlanProblem& problem, const PlanStage& stage) {
  Boundary boundary;
  std::vector<int> layers = stage.layers;
  std::sort(layers.begin(), layers.end());
  const auto outside = [&](int v) { return !std::binary_search(layers.begin(), layers.end(), v); };
  for (size_t i = 0; i < stage.layers.size(); ++i) {
    const PlanOperator& o = problem.operators[stage.layers[i]];
    const PlanVariant& variant = VariantIn(problem, stage, i);
    const auto add = [&](double bytes) {
      boundary.bytes += bytes;
      ++boundary.edges;
    };
    for (size_t e = 0; e < o.in_edges.size(); ++e) {
      const PlanEdge& edge = problem.edges[o.in_edges[e]];
      if (outside(edge.from)) add(edge.bytes + variant.in_sync[e]);
    }
    for (size_t e = 0; e < o.out_edges.size(); ++e) {
      const PlanEdge& edge = problem.edges[o.out_edges[e]];
      if (outside(edge.to)) add(edge.bytes + variant.out_sync[e]);
    }
  }
  return boundary;
}

// `graph`: gradients are summed over the level that has the copies.
double StageTime(const PlanProblem& problem, const std::vector<PlanStage>& stages, int s,
                 bool graph) {
  const PlanStage& stage = stages[s];
  const auto d = static_cast<double>(stage.data);
  const Boundary boundary = BoundaryOf(problem, stage);
  const double sync =
      4 * (d - 1) * ParameterBytes(problem, stage) / d / static_cast<double>(problem.micro_batches);
  const double bandwidth = FlatBandwidth(problem);
  const double sum_bandwidth = graph ? CopiesBandwidth(problem, stage.data) : bandwidth;
  return ComputeTime(problem, stage) / d + 2 * boundary.bytes / d / bandwidth +
         sync / sum_bandwidth;
}

// What messages cost besides their bytes.
double LatencyTime(const PlanProblem& problem, const std::vector<PlanStage>& stages, int s) {
  if (problem.latency == 0) return 0;
  const Boundary boundary = BoundaryOf(problem, stages[s]);
  const double samples = SamplesOfCopy(problem, stages[s]) * static_cast<double>(stages[s].data);
  return 2 * boundary.edges * problem.latency * static_cast<double>(problem.micro_batch_size) /
         samples;
}

double Load(const PlanProblem& problem, const std::vector<PlanStage>& stages, int s) {
  const PlanStage& stage = stages[s];
  double load = 0;
  if (stage.on_processor) {
    for (int v : stage.layers) load += problem.operators[v].processor_time;
    return load;  // a processor does not pay for transfers
  }
  load = ComputeTime(problem, stage);
  const std::vector<int> stage_of = StageOf(problem, stages);
  std::set<int> moved;
  for (int v : stage.layers) {
    for (int e : problem.operators[v].in_edges) {
      if (stage_of[problem.edges[e].from] != s) moved.insert(problem.edges[e].from);
    }
    for (int e : problem.operators[v].out_edges) {
      if (stage_of[problem.edges[e].to] != s) moved.insert(v);
    }
  }
  for (int v : moved) load += problem.operators[v].transfer_time;
  return load;
}

}  // namespace

double FlatBandwidth(const PlanProblem& problem) {
  if (problem.bandwidth > 0 || problem.levels.empty()) return problem.bandwidth;
  return problem.levels.back().bandwidth;
}

double CopiesBandwidth(const PlanProblem& problem, int64_t copies) {
  return LevelOfDevices(problem, 0, copies).bandwidth;
}

std::vector<int64_t> GraphInFlight(const PlanProblem& problem,
                                   const std::vector<PlanStage>& stages) {
  const std::vector<int> stage_of = StageOf(problem, stages);
  std::vector<int64_t> samples(stages.size()), in_flight(stages.size());
  for (int s = static_cast<int>(stages.size()) - 1; s >= 0; --s) {
    for (int v : stages[s].layers) {
      for (int e : problem.operators[v].out_edges) {
        const int t = stage_of[problem.edges[e].to];
        if (t != s) samples[s] = std::max(samples[s], samples[t]);
      }
    }
    const int64_t own = stages[s].micro_batch_size == 0 ? problem.micro_batch_size * stages[s].data
                                                        : stages[s].micro_batch_size;
    samples[s] += own;
    in_flight[s] = (samples[s] + own - 1) / own;
  }
  return in_flight;
}

double MemoryOfStage(const PlanProblem& problem, const std::vector<PlanStage>& stages, int stage) {
  const PlanStage& here = stages[stage];
  double in_flight_bytes = 0, fixed_bytes = 0;
  for (size_t i = 0; i < here.layers.size(); ++i) {
    in_flight_bytes += VariantIn(problem, here, i).in_flight_bytes;
    fixed_bytes += VariantIn(problem, here, i).fixed_bytes;
  }
  if (here.on_processor) return 0;
  int64_t in_flight = here.in_flight;
  if (in_flight == 0) {
    int64_t copies = 0;
    for (size_t s = stage; s < stages.size(); ++s) copies += stages[s].data;
    in_flight = (copies + here.data - 1) / here.data;
  }
  const double micro_batch =
      SamplesOfCopy(problem, here) / static_cast<double>(problem.micro_batch_size);
  return in_flight_bytes * micro_batch * static_cast<double>(in_flight) + fixed_bytes;
}

double StageValue(const PlanProblem& problem, PlanObjective objective,
                  const std::vector<PlanStage>& stages, int stage) {
  switch (objective) {
    case PlanObjective::kStageTime:
      return StageTime(problem, stages, stage, false);
    case PlanObjective::kGraphStageTime:
    case PlanObjective::kGraphBatchTime:
      return StageTime(problem, stages, stage, true) + LatencyTime(problem, stages, stage);
    case PlanObjective::kMaxLoad:
      return Load(problem, stages, stage);
    case PlanObjective::kVariance:
      return ComputeTime(problem, stages[stage]);
    case PlanObjective::kBatchTime:
    case PlanObjective::kBatchTimeNoOverlap:
    case PlanObjective::kSliceTime:
      return ComputeTime(problem, stages[stage]) / static_cast<double>(stages[stage].data);
    case PlanObjective::kPipeDream:
      break;
  }
  return PipeDreamStageTime(problem, stages, stage);
}

double PlanValue(const PlanProblem& problem, PlanObjective objective,
                 const std::vector<PlanStage>& stages) {
  if (stages.empty()) return 0;
  const int num_stages = static_cast<int>(stages.size());
  if (objective == PlanObjective::kPipeDream) {
    return PipeDreamTime(problem, stages);
  }
  std::vector<double> values;
  for (int s = 0; s < num_stages; ++s) {
    values.push_back(StageValue(problem, objective, stages, s));
  }
  if (objective == PlanObjective::kGraphBatchTime) return GraphBatchTime(problem, stages);
  if (objective == PlanObjective::kBatchTime) {
    return PlanBatchTime(problem, stages, TransferKind::kBesideCompute);
  }
  if (objective == PlanObjective::kBatchTimeNoOverlap) {
    return PlanBatchTime(problem, stages, TransferKind::kBetweenPasses);
  }
  if (objective != PlanObjective::kVariance) return *std::max_element(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  return squares / n;
}

double PeakBytes(const PlanProblem& problem, const std::vector<PlanStage>& stages) {
  double peak = 0;
  for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
    peak = std::max(peak, MemoryOfStage(problem, stages, s));
  }
  return peak;
}

Plan PlanOfRanges(const PlanProblem& problem, PlanObjective objective,
                  const std::vector<std::vector<int>>& groups, const std::vector<int>& first) {
  Plan plan;
  plan.objective = objective;
  plan.lower_bound = SimpleLowerBound(problem, objective);
  for (size_t s = 0; s < first.size(); ++s) {
    const int end = s + 1 < first.size() ? first[s + 1] : static_cast<int>(groups.size());
    PlanStage stage;
    for (int g = first[s]; g < end; ++g) {
      stage.layers.insert(stage.layers.end(), groups[g].begin(), groups[g].end());
    }
    std::sort(stage.layers.begin(), stage.layers.end());
    for (int v : stage.layers) stage.variants.push_back(PlainVariantOf(problem.operators[v]));
    plan.stages.push_back(std::move(stage));
  }
  plan.value = PlanValue(problem, objective, plan.stages);
  plan.peak_bytes = PeakBytes(problem, plan.stages);
  plan.state = PlanState::kFeasible;
  if (plan.peak_bytes > problem.memory_bytes) {
    plan.stages.clear();
    plan.state = PlanState::kInfeasible;
  }
  return plan;
}

absl::StatusOr<std::vector<std::vector<int>>> PlanGroups(const PlanProblem& problem,
                                                         absl::string_view planner) {
  PIPELAB_RETURN_IF_ERROR(CheckHasPlainVariants(problem, planner));
  if (problem.objective == PlanObjective::kMaxLoad) {
    if (problem.devices < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--planner=", planner, ": it plans accelerators only; --devices=0"));
    }
    for (const PlanOperator& o : problem.operators) {
      if (o.on_accelerator) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "--planner=", planner, ": it plans accelerators only, and layer ", o.id, " needs a CPU"));
    }
    return PlacementUnits(problem).members;
  }
  return SingleGroups(problem).members;
}

double StageSliceTime(const PlanProblem& problem, const PlanStage& stage, size_t size, int length,
                      int before) {
  double time = 0;
  for (size_t i = 0; i < stage.layers.size(); ++i) {
    const PlanTimes& t = problem.operators[stage.layers[i]].slice_times[size][length - 1][before];
    time += t.time + (VariantIn(problem, stage, i).recompute ? t.forward : 0);
  }
  return time;
}

void SetState(bool complete, bool timed_out, Plan* plan) {
  if (complete) {
    plan->state = plan->has_plan() ? PlanState::kOptimal : PlanState::kInfeasible;
    if (plan->has_plan()) plan->lower_bound = plan->value;
    plan->bound_reason = "no plan of its kind is better";
  } else if (timed_out) {
    plan->state = PlanState::kTimeLimit;
  } else {
    plan->state = plan->has_plan() ? PlanState::kFeasible : PlanState::kInfeasible;
  }
}

double LeastTime(const PlanProblem& problem, const PlanVariant& variant) {
  if (variant.times.empty()) return variant.time;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t samples : problem.micro_batch_sizes) {
    const auto size = static_cast<double>(samples);
    least = std::min(least, TimesOfSamples(problem, variant, size).time *
                                (static_cast<double>(problem.micro_batch_size) / size));
  }
  return least;
}

double SimpleLowerBound(const PlanProblem& problem, PlanObjective objective) {
  if (objective == PlanObjective::kVariance) return 0;
  const bool max_load = objective == PlanObjective::kMaxLoad;
  double work = 0, largest = 0;
  for (const PlanOperator& o : problem.operators) {
    const bool processor = max_load && problem.processors > 0;
    double least_work = processor ? o.processor_time : std::numeric_limits<double>::infinity();
    double least = least_work;
    for (const auto& [degree, variants] : o.variants) {
      if (max_load && !o.on_accelerator) continue;
      for (const PlanVariant& v : variants) {
        const double time = LeastTime(problem, v);
        least_work = std::min(least_work, degree * time);
        // With copies, an operator is divided among them.
        const auto copies = static_cast<double>(max_load ? 1 : problem.devices);
        least = std::min(least, time / copies);
      }
    }
    work += least_work;
    largest = std::max(largest, least);
  }
  const double longest = std::max(
      work / static_cast<double>(problem.devices + (max_load ? problem.processors : 0)), largest);
  if (objective != PlanObjective::kGraphBatchTime) return longest;
  return longest * static_cast<double>(BatchSamples(problem)) /
         static_cast<double>(problem.micro_batch_size);
}

int PlainVariantOf(const PlanOperator& op) {
  const auto it = op.variants.find(1);
  if (it == op.variants.end()) return 0;
  for (size_t i = 0; i < it->second.size(); ++i) {
    if (!it->second[i].recompute) return static_cast<int>(i);
  }
  return 0;
}

absl::Status CheckHasPlainVariants(const PlanProblem& problem, absl::string_view planner) {
  for (const PlanOperator& o : problem.operators) {
    if (o.variants.count(1) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("--planner=", planner,
                                                     ": it has no tensor parallelism, but layer ",
                                                     o.id, " cannot be run without"));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipelab
