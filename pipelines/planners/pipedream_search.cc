// States are the downsets of what comes first. A stage's time is at least its work over its
// machines. So of the cuts between two sets only those are looked at that leave both sides fast
// enough to beat the best, from the even one outwards.
#include "pipelines/planners/pipedream_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/time/clock.h"
#include "pipelines/planners/cut_walk.h"
#include "pipelines/planners/plan_costs.h"

namespace pipelab {
namespace {

// Sums over a set and what goes over the cut above it.
struct Cut {
  double time = 0, parameters = 0, in_flight_bytes = 0, fixed_bytes = 0, out = 0;
};

struct Cell {  // of a set on so many machines
  double value = kInfinity;
  int from = -1, machines = 0;  // the last stage: what is before it, and its machines
};

struct PlacedStage {
  int begin = 0, end = 0;         // sets
  std::vector<int64_t> machines;  // on each level
};

class PipeDreamSearch {
 public:
  PipeDreamSearch(const PlanProblem& problem, const std::vector<PlanLevel>& levels,
                  const OperatorGroups& groups, const Downsets& sets, double lower,
                  absl::Time deadline)
      : problem_(problem), levels_(levels), groups_(groups), sets_(sets), deadline_(deadline) {
    AddSums();
    enough_ = std::max(lower, cuts_.back().time / static_cast<double>(problem.devices));
    for (int u = 0; u < sets_.size(); ++u) order_.push_back(u);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return cuts_[a].time < cuts_[b].time; });
  }

  // Stages of a smaller value than `upper`; none: there are none.
  std::vector<PlacedStage> Run(double upper) {
    if (stopped_) return {};
    const int all = sets_.size() - 1;
    int64_t below = 1;
    for (size_t l = 0; l + 1 < levels_.size(); ++l) {
      tables_.emplace_back(static_cast<size_t>(sets_.size()) * sets_.size(), kInfinity);
      // What levels above divide, and cut.
      int64_t above = 1;
      for (size_t h = l + 1; h < levels_.size(); ++h) above *= levels_[h].devices;
      const double inner_upper = upper * static_cast<double>(above);
      const auto may_cut = [&](int u) {
        for (size_t h = l + 1; h < levels_.size(); ++h) {
          // With a stage on each side of the cut, neither has all machines of the level.
          const auto n = static_cast<double>(levels_[h].devices);
          if (2 * cuts_[u].out / levels_[h].bandwidth * n < inner_upper * (n - 1)) return true;
        }
        return u == 0 || u == all;
      };
      for (int i = 0; i < all && !stopped_; ++i) {
        if (!may_cut(i)) continue;
        const std::vector<Cell> cells = Solve(static_cast<int>(l), below, i, inner_upper);
        for (int j = i + 1; j < sets_.size(); ++j) {
          tables_[l][static_cast<size_t>(i) * sets_.size() + j] =
              CellOf(cells, static_cast<int>(l), j).value;
        }
      }
      below *= levels_[l].devices;
    }
    std::vector<PlacedStage> stages;
    const int top = static_cast<int>(levels_.size()) - 1;
    const std::vector<Cell> cells = Solve(top, below, 0, upper);
    if (stopped_ || CellOf(cells, top, all).value >= upper) return stages;
    Collect(cells, top, below, 0, all, {}, &stages);
    return stages;
  }

  bool stopped() const { return stopped_; }

 private:
  void AddSums() {
    std::vector<Cut> of_group(groups_.members.size());
    for (size_t g = 0; g < of_group.size(); ++g) {
      for (int v : groups_.members[g]) {
        const PlanOperator& o = problem_.operators[v];
        const PlanVariant& plain = o.variants.at(1)[PlainVariantOf(o)];
        of_group[g].time += plain.time;
        of_group[g].parameters += plain.parameter_bytes;
        of_group[g].in_flight_bytes += plain.in_flight_bytes;
        of_group[g].fixed_bytes += plain.fixed_bytes;
      }
    }
    cuts_.resize(sets_.size());
    CutWalk walk(problem_, groups_, sets_, deadline_);
    walk.Next();
    while (walk.Next()) {
      const int u = walk.set();
      const Cut &below = cuts_[sets_.parent(u)], &more = of_group[sets_.added(u)];
      cuts_[u] = {below.time + more.time, below.parameters + more.parameters,
                  below.in_flight_bytes + more.in_flight_bytes,
                  below.fixed_bytes + more.fixed_bytes, 0};
      for (int v : SourcesOf(problem_, walk.edges())) {
        cuts_[u].out += problem_.operators[v].output_bytes;
      }
    }
    stopped_ = walk.stopped();
  }

  // One machine of the level: what the level below makes of the interval.
  double TimeBetween(int level, int i, int j) const {
    if (level == 0) return cuts_[j].time - cuts_[i].time;
    return tables_[level - 1][static_cast<size_t>(i) * sets_.size() + j];
  }

  const Cell& CellOf(const std::vector<Cell>& cells, int level, int j) const {
    return cells[static_cast<size_t>(j) * (levels_[level].devices + 1) + levels_[level].devices];
  }

  bool Fits(int i, int j, int64_t behind, int64_t machines) const {
    if (!std::isfinite(problem_.memory_bytes)) return true;
    const int64_t y = (behind + machines - 1) / machines;
    return (cuts_[j].in_flight_bytes - cuts_[i].in_flight_bytes) * static_cast<double>(y) +
               cuts_[j].fixed_bytes - cuts_[i].fixed_bytes <=
           problem_.memory_bytes * (1 + kExact);
  }

  double SyncedTime(double time, double sync, int64_t q) const {
    return (time + sync * static_cast<double>(q - 1) / static_cast<double>(q)) /
           static_cast<double>(q);
  }

  // [set][machines] of the level for intervals that begin at i. `below`: devices in one machine.
  std::vector<Cell> Solve(int level, int64_t below, int i, double upper) {
    const int n = static_cast<int>(levels_[level].devices);
    const bool top = level + 1 == static_cast<int>(levels_.size());
    std::vector<Cell> cells(static_cast<size_t>(sets_.size()) * (n + 1));
    FindCuts(level, n, i, upper);
    const double work_all = cuts_.back().time, work_i = cuts_[i].time;
    const double scale = static_cast<double>(below);
    const int64_t inner = level == 0 ? 1 : levels_[level - 1].devices;
    for (int j = i + 1; j < sets_.size(); ++j) {
      if (j % 64 == 0 && absl::Now() > deadline_) {
        stopped_ = true;
        break;
      }
      if (!sets_.Includes(j, i)) continue;
      // Machines that leave enough to the rest, and are enough themselves.
      int least = 1, most = n;
      if (std::isfinite(upper) && !top) {
        if (cuts_[j].time - work_i > upper * scale * n * (1 + 1e-9)) continue;
      } else if (std::isfinite(upper)) {
        const double unit = upper * scale * (1 + 1e-9);
        least = std::max(1, static_cast<int>(std::ceil((cuts_[j].time - work_i) / unit)));
        most = n - static_cast<int>(std::ceil((work_all - cuts_[j].time) / unit));
        if (j + 1 < sets_.size()) most = std::min(most, n - 1);
      }
      Cell* here = &cells[static_cast<size_t>(j) * (n + 1)];
      for (int m = least; m <= most; ++m) {
        if (top && j + 1 == sets_.size() && m != n) continue;
        const double b = levels_[level].bandwidth;
        const double whole = TimeBetween(level, i, j);
        if (std::isfinite(whole) && (!top || i > 0 || Fits(i, j, n, m))) {
          const double sync =
              4 * (cuts_[j].parameters - cuts_[i].parameters) / b / static_cast<double>(inner);
          const double value = SyncedTime(whole, sync, m);
          if (value < upper) here[m] = {value, -1, m};
        }
        for (int q = 1; q < m; ++q) Split({level, i, j, scale, upper}, m, q, cells, &here[m]);
      }
    }
    return cells;
  }

  // [q] Sets by their time that a stage on q machines may follow, going by what it takes in.
  void FindCuts(int level, int n, int i, double upper) {
    cuts_of_.assign(n + 1, {});
    for (int q = 1; q <= n; ++q) {
      const double most = upper * levels_[level].bandwidth * q / 2;
      for (int u : order_) {
        if (u == i || cuts_[u].time < cuts_[i].time || cuts_[u].out > most) continue;
        cuts_of_[q].push_back({cuts_[u].time, u});
      }
    }
  }

  struct Interval {
    int level, begin, end;  // of sets
    double scale, upper;    // devices in one machine of the level; what a plan must be below
  };

  // The last of several stages on q of m machines.
  void Split(const Interval& of, int m, int q, const std::vector<Cell>& cells, Cell* best) const {
    const int level = of.level, j = of.end;
    const double upper = of.upper;
    const int n = static_cast<int>(levels_[level].devices);
    const double b = levels_[level].bandwidth, bq = b * q;
    const bool last = j + 1 == sets_.size();
    const bool limited = level + 1 == static_cast<int>(levels_.size());
    const double out = last ? 0 : 2 * cuts_[j].out / bq;
    if (out >= std::min(best->value, upper) || best->value <= enough_) return;
    const double end = cuts_[j].time, begin = cuts_[of.begin].time;
    const auto consider = [&](int k) {
      const Cell& before = cells[static_cast<size_t>(k) * (n + 1) + m - q];
      double value = std::max(before.value, out);
      if (value >= best->value || value >= upper) return;
      if (!sets_.Includes(j, k) || k == j) return;
      const double time = TimeBetween(level, k, j);
      const double sync = 4 * (cuts_[j].parameters - cuts_[k].parameters) / b;
      value = std::max({value, SyncedTime(time, sync, q), 2 * cuts_[k].out / bq});
      if (value >= best->value || value >= upper) return;
      if (limited && level == 0 && !Fits(k, j, n - (m - q), q)) return;
      *best = {value, k, q};
    };
    // Sets by their work: (end - work) / q and (work - begin) / (m - q) must be below the best.
    const double even = begin + (end - begin) * (m - q) / m;
    const auto& sets = cuts_of_[q];
    const auto middle = std::lower_bound(sets.begin(), sets.end(), std::make_pair(even, 0));
    const double slack = of.scale * (1 + 1e-9);
    for (auto it = middle; it != sets.end() && it->first <= end; ++it) {
      if (it->first - begin > std::min(best->value, upper) * slack * (m - q)) break;
      consider(it->second);
    }
    for (auto it = middle; it != sets.begin();) {
      --it;
      if (end - it->first > std::min(best->value, upper) * slack * q) break;
      consider(it->second);
    }
  }

  // The stages of an interval, each on `above` of the levels above.
  void Collect(const std::vector<Cell>& cells, int level, int64_t below, int i, int j,
               const std::vector<int64_t>& above, std::vector<PlacedStage>* stages) {
    const int n = static_cast<int>(levels_[level].devices);
    std::vector<PlacedStage> here;
    for (int m = n; j != i;) {
      const Cell& cell = cells[static_cast<size_t>(j) * (n + 1) + m];
      const int from = cell.from < 0 ? i : cell.from;
      here.push_back({from, j, {cell.machines}});
      m -= cell.machines;
      j = from;
    }
    std::reverse(here.begin(), here.end());
    for (PlacedStage& stage : here) {
      stage.machines.insert(stage.machines.end(), above.begin(), above.end());
      if (level == 0) {
        stages->push_back(std::move(stage));
        continue;
      }
      const int64_t inner = below / levels_[level - 1].devices;
      Collect(Solve(level - 1, inner, stage.begin, kInfinity), level - 1, inner, stage.begin,
              stage.end, stage.machines, stages);
    }
  }

  const PlanProblem& problem_;
  const std::vector<PlanLevel>& levels_;
  const OperatorGroups& groups_;
  const Downsets& sets_;
  const absl::Time deadline_;
  std::vector<Cut> cuts_;
  double enough_ = 0;       // no plan is better: what is below it makes no difference
  std::vector<int> order_;  // sets by their time
  std::vector<std::vector<std::pair<double, int>>> cuts_of_;  // [machines]: time, set
  std::vector<std::vector<double>> tables_;                   // [level][i][j]
  bool stopped_ = false;
};

}  // namespace

PlanStage MakePipeDreamStage(const PlanProblem& problem, const OperatorGroups& groups,
                             const std::vector<int>& members, std::vector<int64_t> machines) {
  PlanStage stage;
  for (int g : members) {
    stage.layers.insert(stage.layers.end(), groups.members[g].begin(), groups.members[g].end());
  }
  std::sort(stage.layers.begin(), stage.layers.end());
  for (int v : stage.layers) stage.variants.push_back(PlainVariantOf(problem.operators[v]));
  for (int64_t m : machines) stage.data *= m;
  stage.data_of_level = std::move(machines);
  return stage;
}

FoundStages PipeDreamByLevels(const PlanProblem& problem, const OperatorGroups& groups,
                              const Downsets& sets, double upper, double lower,
                              absl::Time deadline) {
  PipeDreamSearch search(problem, problem.levels, groups, sets, lower, deadline);
  FoundStages result;
  for (const PlacedStage& p : search.Run(upper)) {
    result.stages.push_back(
        MakePipeDreamStage(problem, groups, sets.Nodes(p.end, p.begin), p.machines));
  }
  result.stopped = search.stopped();
  return result;
}

}  // namespace pipelab
