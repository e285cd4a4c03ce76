#include <algorithm>
#include <cmath>
#include <numeric>

#include "pipelines/planners/copies_search.h"
#include "pipelines/planners/cut_walk.h"
#include "pipelines/planners/pipedream_search.h"
#include "pipelines/planners/plan_costs.h"

namespace pipelab {
namespace {

constexpr double kRoundingRatio = 1 + 1e-12;
constexpr int64_t kFewMachines = 64;

// On one level, with communication behind compute.
class PipeDreamCosts : public SequenceCosts {
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

  PipeDreamCosts(const PlanProblem& problem, const OperatorGroups& groups, const Downsets& sets,
                 absl::Time deadline)
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
    CutWalk walk(problem, groups, sets, deadline);
    walk.Next();
    while (walk.Next()) {
      const int u = walk.set();
      const Sums &below = sums_[sets.parent(u)], &more = of_group[sets.added(u)];
      sums_[u] = {below.time + more.time, below.sync + more.sync,
                  below.in_flight_bytes + more.in_flight_bytes,
                  below.fixed_bytes + more.fixed_bytes, 0};
      for (int v : SourcesOf(problem, walk.edges())) {
        sums_[u].across += 2 * problem.operators[v].output_bytes / b;
      }
    }
    stopped_ = walk.stopped();
  }

  bool stopped() const { return stopped_; }  // the deadline passed before all sums were known

  const Downsets& sets() const { return sets_; }
  const std::vector<int>& copies() const { return copies_; }
  double room() const { return problem_.memory_bytes * kRoundingRatio; }
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
  bool stopped_ = false;
};

// For many machines: the least bound on the stage time under which they suffice. Under a bound each
// set of what comes last needs a fewest of machines; fewer behind a stage never hurt it, since they
// put less in flight.
class BoundSearch {
 public:
  BoundSearch(const PipeDreamCosts& costs, int64_t machines, absl::Time deadline)
      : costs_(costs), sets_(costs.sets()), machines_(machines), deadline_(deadline) {}

  // Below `upper`, which may be infinite.
  CopiesResult Run(double upper) {
    CopiesResult best;
    if (!Suffice(std::isfinite(upper) ? upper * (1 - kBoundGap) : upper)) {
      best.stopped = stopped_;
      return best;
    }
    Take(&best);
    double lower = costs_.Work(sets_.size() - 1) / static_cast<double>(machines_) * (1 - 1e-9);
    while (!stopped_ && lower < best.value * (1 - kBoundGap)) {
      const double middle = lower + (best.value - lower) / 2;
      if (middle <= lower || middle >= best.value) break;  // no number is between
      if (Suffice(middle)) {
        Take(&best);
      } else {
        lower = middle;
      }
    }
    best.stopped = stopped_;
    return best;
  }

 private:
  static constexpr double kBoundGap = 1e-13;
  static constexpr int64_t kTooMany = std::numeric_limits<int64_t>::max() / 4;
  struct First {
    int64_t behind_and_own = kTooMany, own = 0;
    int later = -1;
    double time = 0;
  };

  bool Suffice(double bound) {
    first_.assign(sets_.size(), First());
    first_[0] = {0, 0, -1, 0};
    std::vector<int> reached = {0};
    const double longest = bound * (1 + 1e-9);
    for (int u = 1; u < sets_.size(); ++u) {
      if (u % 32 == 0 && absl::Now() > deadline_) stopped_ = true;
      if (stopped_) return false;
      const auto above = static_cast<int64_t>(std::ceil(costs_.WorkAbove(u) / bound * (1 - 1e-9)));
      for (int later : reached) {
        const int64_t behind = first_[later].behind_and_own;
        const int64_t most = std::min(machines_ - above, first_[u].behind_and_own - 1) - behind;
        if (most < 1 || !sets_.Includes(u, later) ||
            costs_.Work(u) - costs_.Work(later) > longest * static_cast<double>(most)) {
          continue;
        }
        Try(u, later, behind, most, bound);
      }
      if (first_[u].later >= 0) reached.push_back(u);
    }
    return first_.back().later >= 0;
  }

  void Try(int u, int later, int64_t behind, int64_t most, double bound) {
    PipeDreamCosts::Stage stage;
    if (!costs_.Sum(u, later, &stage)) return;
    const auto enough = [&](int64_t d) {
      const int64_t y = (behind + 2 * d - 1) / d;
      return stage.Time(d) <= bound &&
             stage.in_flight_bytes * static_cast<double>(y) + stage.fixed_bytes <= costs_.room();
    };
    // From two on a stage only becomes faster.
    int64_t d = 1;
    if (!enough(1)) {
      if (most < 2 || !enough(most)) return;
      int64_t low = 1;
      for (d = most; d - low > 1;) {
        const int64_t middle = low + (d - low) / 2;
        (enough(middle) ? d : low) = middle;
      }
    }
    first_[u] = {behind + d, d, later, stage.Time(d)};
  }

  void Take(CopiesResult* result) const {
    result->stages.clear();
    result->value = 0;
    for (int u = sets_.size() - 1; u > 0; u = first_[u].later) {
      result->stages.push_back({u, first_[u].later, static_cast<int>(first_[u].own),
                                static_cast<int>(first_[u].behind_and_own)});
      result->value = std::max(result->value, first_[u].time);
    }
  }

  const PipeDreamCosts& costs_;
  const Downsets& sets_;
  const int64_t machines_;
  const absl::Time deadline_;
  bool stopped_ = false;
  std::vector<First> first_;  // [set] the fewest machines, and its first stage
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
      if (PlanValue(problem, PlanObjective::kPipeDream, tried) > value * kRoundingRatio) continue;
      if (PeakBytes(problem, tried) > problem.memory_bytes * kRoundingRatio) continue;
      *stages = std::move(tried);
      left -= more;
    }
  }
}

}  // namespace

FoundStages PipeDreamByCopies(const PlanProblem& problem, const OperatorGroups& groups,
                              const Downsets& sets, double upper, absl::Time deadline) {
  FoundStages result;
  const PipeDreamCosts costs(problem, groups, sets, deadline);
  result.stopped = costs.stopped();
  if (result.stopped) return result;
  const CopiesResult found =
      problem.devices > kFewMachines
          ? BoundSearch(costs, problem.devices, deadline).Run(upper)
          : CopiesSearch<PipeDreamCosts>(costs, static_cast<int>(problem.devices), upper)
                .Run(deadline);
  result.stopped = found.stopped;
  for (const CopiesStage& s : found.stages) {
    result.stages.push_back(
        MakePipeDreamStage(problem, groups, sets.Nodes(s.set, s.later), {s.copies}));
  }
  UseAllMachines(problem, found.value, &result.stages);
  return result;
}

}  // namespace pipelab
