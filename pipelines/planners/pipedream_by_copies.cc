#include <algorithm>
#include <cmath>
#include <numeric>

#include "pipelines/planners/copies_search.h"
#include "pipelines/planners/pipedream_search.h"
#include "pipelines/planners/plan_costs.h"

namespace pipelab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSame = 1 + 1e-12;

// On one level, with communication behind compute.
class Costs {
 public:
  struct Stage {
    double time = 0, sync = 0, transfer = 0;
    double in_flight_bytes = 0, fixed_bytes = 0;
    double in_flight_savings = 0, fixed_savings = 0;  // nothing recomputes

    double Time(int64_t q) const {
      const auto n = static_cast<double>(q);
      return std::max(time + sync * (n - 1) / n, transfer) / n;
    }
    double Fewest(double upper) const { return std::max(time, transfer) / upper * (1 - 1e-9); }
  };

  Costs(const PlanProblem& problem, const OperatorGroups& groups, const Downsets& sets)
      : problem_(problem), sets_(sets), sums_(sets.size()) {
    copies_.resize(problem.devices);
    std::iota(copies_.begin(), copies_.end(), 1);
    const double b = problem.levels[0].bandwidth;
    std::vector<Sums> of_group(groups.members.size());
    for (size_t g = 0; g < of_group.size(); ++g) {
      for (int v : groups.members[g]) {
        const PlanOperator& o = problem.operators[v];
        const PlanVariant& plain = o.variants.at(1)[PlainVariantOf(o)];
        of_group[g].time += plain.time;
        of_group[g].sync += 4 * plain.parameter_bytes / b;
        of_group[g].in_flight_bytes += plain.in_flight_bytes;
        of_group[g].fixed_bytes += plain.fixed_bytes;
      }
    }
    for (int u = 1; u < sets.size(); ++u) {
      const Sums &below = sums_[sets.parent(u)], &more = of_group[sets.added(u)];
      sums_[u] = {below.time + more.time, below.sync + more.sync,
                  below.in_flight_bytes + more.in_flight_bytes,
                  below.fixed_bytes + more.fixed_bytes, 0};
      for (const PlanOperator& o : problem.operators) {
        for (int e : o.out_edges) {
          const int from = groups.group_of[problem.edges[e].from];
          const int to = groups.group_of[problem.edges[e].to];
          if (sets.Has(u, from) || !sets.Has(u, to)) continue;
          sums_[u].across += 2 * o.output_bytes / b;
          break;
        }
      }
    }
  }

  const Downsets& sets() const { return sets_; }
  const std::vector<int>& copies() const { return copies_; }
  double room() const { return problem_.memory_bytes * kSame; }
  double Work(int set) const { return sums_[set].time; }
  double WorkAbove(int set) const { return sums_.back().time - sums_[set].time; }
  bool Sum(int set, int later, Stage* stage) const {
    const Sums &a = sums_[set], &b = sums_[later];
    stage->time = a.time - b.time;
    stage->sync = a.sync - b.sync;
    stage->in_flight_bytes = a.in_flight_bytes - b.in_flight_bytes;
    stage->fixed_bytes = a.fixed_bytes - b.fixed_bytes;
    // The first stage's output is the next one's input.
    stage->transfer = set + 1 == sets_.size() ? 0 : std::max(a.across, b.across);
    return true;
  }
  RecomputeTime Recompute(int, int, const Stage& stage, int64_t y) const {
    if (stage.in_flight_bytes * static_cast<double>(y) + stage.fixed_bytes <= room()) return {0, 0};
    return {kInfinity, kInfinity};
  }
  double ExactRecompute(int, int, const Stage&, int64_t, const RecomputeTime& time) const {
    return time.enough;
  }

 private:
  struct Sums {
    double time = 0, sync = 0, in_flight_bytes = 0, fixed_bytes = 0, across = 0;
  };

  const PlanProblem& problem_;
  const Downsets& sets_;
  std::vector<Sums> sums_;
  std::vector<int> copies_;
};

// Gives stages the machines that are left, where that does not make the plan worse.
void UseAllMachines(const PlanProblem& problem, double value, std::vector<PlanStage>* stages) {
  int64_t left = problem.devices;
  for (const PlanStage& stage : *stages) left -= stage.data;
  // All on one stage first: from one machine to two a stage may become slower, to three faster.
  for (int64_t more = left; left > 0 && more > 0; --more) {
    for (size_t s = 0; s < stages->size() && more <= left; ++s) {
      std::vector<PlanStage> tried = *stages;
      tried[s].data += more;
      tried[s].data_of_level = {tried[s].data};
      if (PlanValue(problem, PlanObjective::kPipeDream, tried) > value * kSame) continue;
      if (PeakBytes(problem, tried) > problem.memory_bytes * kSame) continue;
      *stages = std::move(tried);
      left -= more;
    }
  }
}

}  // namespace

PipeDreamResult PipeDreamByCopies(const PlanProblem& problem, const OperatorGroups& groups,
                                  const Downsets& sets, double upper, absl::Time deadline) {
  const Costs costs(problem, groups, sets);
  CopiesSearch<Costs> search(costs, static_cast<int>(problem.devices), upper);
  const CopiesResult found = search.Run(deadline);
  PipeDreamResult result;
  result.stopped = found.stopped;
  for (const CopiesStage& s : found.stages) {
    result.stages.push_back(
        MakePipeDreamStage(problem, groups, sets.Nodes(s.set, s.later), {s.copies}));
  }
  UseAllMachines(problem, found.value, &result.stages);
  return result;
}

}  // namespace pipelab
