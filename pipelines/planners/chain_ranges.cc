#include "pipelines/planners/chain_ranges.h"

#include <algorithm>
#include <cmath>

#include "absl/time/clock.h"
#include "pipelines/planners/plan_costs.h"

namespace pipelab {
namespace {

// Stages [begin, end) of groups, from a begin on: Add makes the stage one group longer.
class RangeCost {
 public:
  RangeCost(const PlanProblem& problem, const std::vector<std::vector<int>>& groups)
      : problem_(problem),
        groups_(groups),
        group_of_(problem.size()),
        pins_inside_(problem.size()),
        pins_(problem.size()) {
    for (size_t g = 0; g < groups.size(); ++g) {
      for (int v : groups[g]) group_of_[v] = static_cast<int>(g);
    }
    across_.resize(groups.size() + 1);
    for (int v = 0; v < problem.size(); ++v) {
      const PlanOperator& o = problem.operators[v];
      int last = group_of_[v];
      for (int e : o.out_edges) last = std::max(last, group_of_[problem.edges[e].to]);
      for (int cut = group_of_[v] + 1; cut <= last; ++cut) across_[cut] += o.output_bytes;
      pins_[v] = 1 + static_cast<int>(o.out_edges.size());
    }
  }

  void Start(int begin) {
    begin_ = end_ = begin;
    time_ = border_ = in_flight_bytes_ = fixed_bytes_ = transfers_ = 0;
    std::fill(pins_inside_.begin(), pins_inside_.end(), 0);
  }

  void Add() {
    const int here = end_++;
    for (int v : groups_[here]) {
      const PlanOperator& o = problem_.operators[v];
      const PlanVariant& plain = Plain(v);
      time_ += plain.time;
      in_flight_bytes_ += plain.in_flight_bytes;
      fixed_bytes_ += plain.fixed_bytes;
      AddPin(v);
      for (size_t i = 0; i < o.in_edges.size(); ++i) {
        const PlanEdge& edge = problem_.edges[o.in_edges[i]];
        AddPin(edge.from);
        AddEnd(edge.from, here, edge.bytes + plain.in_sync[i], o.in_edges[i], true);
      }
      for (size_t i = 0; i < o.out_edges.size(); ++i) {
        const PlanEdge& edge = problem_.edges[o.out_edges[i]];
        AddEnd(edge.to, here, edge.bytes + plain.out_sync[i], o.out_edges[i], false);
      }
    }
  }

  double Value() const {
    switch (problem_.objective) {
      case PlanObjective::kPipeDream: {
        const double b = problem_.levels.back().bandwidth;
        const double out = end_ < static_cast<int>(groups_.size()) ? across_[end_] : 0;
        return std::max({time_, 2 * across_[begin_] / b, 2 * out / b});
      }
      case PlanObjective::kMaxLoad:
        return time_ + transfers_;
      default:
        return time_ + 2 * border_ / problem_.bandwidth;
    }
  }
  bool Fits(int in_flight) const {
    return in_flight_bytes_ * in_flight + fixed_bytes_ <= problem_.memory_bytes * (1 + 1e-12);
  }

 private:
  const PlanVariant& Plain(int v) const {
    const PlanOperator& o = problem_.operators[v];
    return o.variants.at(1)[PlainVariantOf(o)];
  }

  // One end of an edge is now inside; where the other one is, too, neither is paid for.
  void AddEnd(int other, int here, double bytes, int e, bool other_is_source) {
    const int group = group_of_[other];
    if (group < begin_ || group > here) {
      border_ += bytes;
    } else if (group < here) {
      const PlanOperator& o = problem_.operators[other];
      const auto& edges = other_is_source ? o.out_edges : o.in_edges;
      const size_t i = std::find(edges.begin(), edges.end(), e) - edges.begin();
      const PlanVariant& plain = Plain(other);
      border_ -= problem_.edges[e].bytes + (other_is_source ? plain.out_sync[i] : plain.in_sync[i]);
    }
  }

  // A maker or taker of v's output is now inside: the output crosses the border while not all are.
  void AddPin(int v) {
    if (pins_[v] == 1) return;
    if (pins_inside_[v]++ == 0) transfers_ += problem_.operators[v].transfer_time;
    if (pins_inside_[v] == pins_[v]) transfers_ -= problem_.operators[v].transfer_time;
  }

  const PlanProblem& problem_;
  const std::vector<std::vector<int>>& groups_;
  std::vector<int> group_of_;            // [operator]
  std::vector<double> across_;           // [cut] bytes of outputs that go on
  std::vector<int> pins_inside_, pins_;  // [operator] of its output
  int begin_ = 0, end_ = 0;
  double time_ = 0, border_ = 0, in_flight_bytes_ = 0, fixed_bytes_ = 0, transfers_ = 0;
};

}  // namespace

ChainRanges BestRanges(const PlanProblem& problem, const std::vector<std::vector<int>>& groups,
                       int stages, int most, absl::Time deadline) {
  const int n = static_cast<int>(groups.size());
  RangeCost cost(problem, groups);
  // best[k][i]: groups from i on in k stages; end[k][i]: of the first of them.
  std::vector<std::vector<double>> best(most + 1, std::vector<double>(n + 1, kInfinity));
  std::vector<std::vector<int>> end(most + 1, std::vector<int>(n + 1, n));
  best[0][n] = 0;
  ChainRanges result;
  for (int i = n - 1; i >= 0; --i) {
    if (absl::Now() > deadline) {
      result.stopped = true;
      return result;
    }
    cost.Start(i);
    for (int j = i + 1; j <= n; ++j) {
      cost.Add();
      const double value = cost.Value();
      for (int k = 1; k <= std::min(most, n - i); ++k) {
        const double joined = std::max(value, best[k - 1][j]);
        if (joined >= best[k][i] || !cost.Fits(k)) continue;
        best[k][i] = joined;
        end[k][i] = j;
      }
    }
  }
  int chosen = stages > 0 ? stages : 1;
  for (int k = 1; stages == 0 && k <= most; ++k) {
    if (best[k][0] < best[chosen][0]) chosen = k;
  }
  result.value = best[chosen][0];
  if (!std::isfinite(result.value)) return result;
  for (int k = chosen, i = 0; k > 0; i = end[k--][i]) result.first.push_back(i);
  return result;
}

}  // namespace pipelab
