#include "pipelines/planners/placement_units.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace pipelab {
namespace {

constexpr double kNoTime = 1e-6;  // ms, as in dnn-partitioning

class Units {
 public:
  Units(const PlanProblem& problem, JoinIdle join)
      : problem_(problem),
        any_bytes_(join == JoinIdle::kAll || LosesNothing(problem)),
        unit_(problem.size()) {
    std::iota(unit_.begin(), unit_.end(), 0);
    std::vector<int> first;
    for (int v = 0; v < problem.size(); ++v) {
      const int colour = problem.operators[v].colour;
      if (colour < 0) continue;
      if (static_cast<int>(first.size()) <= colour) first.resize(colour + 1, -1);
      if (first[colour] < 0) first[colour] = v;
      Join(v, first[colour]);
    }
    FindOrder();
    JoinCycles();
    while (JoinIdle()) {
    }
  }

  OperatorGroups Take() {
    std::vector<std::vector<int>> members;
    std::vector<int> index(problem_.size(), -1);
    for (int v = 0; v < problem_.size(); ++v) {
      const int u = Find(v);
      if (index[u] < 0) {
        index[u] = static_cast<int>(members.size());
        members.emplace_back();
      }
      members[index[u]].push_back(v);
    }
    return MakeGroups(members, problem_.size(), order_);
  }

 private:
  int Find(int v) {
    while (unit_[v] != v) v = unit_[v] = unit_[unit_[v]];
    return v;
  }
  void Join(int a, int b) { unit_[Find(a)] = Find(b); }

  // Pairs of operators of which the first's unit comes first.
  void FindOrder() {
    std::vector<bool> has_forward(problem_.size());
    for (int v = 0; v < problem_.size(); ++v) {
      if (!problem_.operators[v].is_backward) has_forward[Find(v)] = true;
    }
    for (const PlanEdge& edge : problem_.edges) {
      const bool from = problem_.operators[edge.from].is_backward;
      const bool to = problem_.operators[edge.to].is_backward;
      if (!from && !to) order_.emplace_back(edge.from, edge.to);
      if (from && to && (!has_forward[Find(edge.from)] || !has_forward[Find(edge.to)])) {
        order_.emplace_back(edge.to, edge.from);
      }
    }
  }

  void JoinCycles() {
    std::vector<std::vector<int>> next(problem_.size());
    for (const auto& [from, to] : order_) {
      if (Find(from) != Find(to)) next[Find(from)].push_back(Find(to));
    }
    std::vector<int> number(problem_.size(), -1), low(problem_.size()), stack;
    std::vector<bool> on_stack(problem_.size());
    int count = 0;
    struct Frame {
      int v;
      size_t i;
    };
    for (int root = 0; root < problem_.size(); ++root) {
      if (number[root] >= 0 || Find(root) != root) continue;
      std::vector<Frame> frames = {{root, 0}};
      while (!frames.empty()) {
        const int v = frames.back().v;
        if (frames.back().i == 0) {
          number[v] = low[v] = count++;
          stack.push_back(v);
          on_stack[v] = true;
        }
        if (frames.back().i < next[v].size()) {
          const int w = next[v][frames.back().i++];
          if (number[w] < 0) frames.push_back({w, 0});
          if (number[w] >= 0 && on_stack[w]) low[v] = std::min(low[v], number[w]);
          continue;
        }
        if (low[v] == number[v]) {
          for (int w = -1; w != v;) {
            w = stack.back();
            stack.pop_back();
            on_stack[w] = false;
            components_.emplace_back(w, v);
          }
        }
        frames.pop_back();
        if (!frames.empty()) low[frames.back().v] = std::min(low[frames.back().v], low[v]);
      }
    }
    for (const auto& [a, b] : components_) Join(a, b);
  }

  // False: there was none.
  bool JoinIdle() {
    std::vector<double> time(problem_.size()), bytes(problem_.size());
    std::vector<std::set<int>> neighbours(problem_.size());
    std::vector<bool> meets_backward(problem_.size()), on_accelerator(problem_.size(), true);
    for (int v = 0; v < problem_.size(); ++v) {
      const PlanOperator& o = problem_.operators[v];
      time[Find(v)] += o.processor_time + o.variants.at(1)[0].time;
      bytes[Find(v)] += o.variants.at(1)[0].fixed_bytes;
      if (!o.on_accelerator) on_accelerator[Find(v)] = false;
    }
    for (const PlanEdge& edge : problem_.edges) {
      const int a = Find(edge.from), b = Find(edge.to);
      const bool from = problem_.operators[edge.from].is_backward;
      const bool to = problem_.operators[edge.to].is_backward;
      if (from != to) meets_backward[from ? b : a] = true;
      if (from || to || a == b) continue;
      neighbours[a].insert(b);
      neighbours[b].insert(a);
    }
    for (const auto& [from, to] : order_) {
      if (Find(from) == Find(to)) continue;
      neighbours[Find(from)].insert(Find(to));
      neighbours[Find(to)].insert(Find(from));
    }
    bool joined = false;
    for (int v = 0; v < problem_.size(); ++v) {
      if (Find(v) != v || time[v] >= kNoTime || meets_backward[v] || !on_accelerator[v]) continue;
      if (neighbours[v].size() != 1 || (bytes[v] > 0 && !any_bytes_)) continue;
      const int other = *neighbours[v].begin();
      if (Find(other) != other) continue;  // joined in this round: the next one sees it
      Join(v, other);
      joined = true;
    }
    return joined;
  }

  const PlanProblem& problem_;
  const bool any_bytes_;   // idle units join their neighbour whatever their bytes
  std::vector<int> unit_;  // union-find
  std::vector<std::pair<int, int>> order_, components_;
};

}  // namespace

OperatorGroups PlacementUnits(const PlanProblem& problem, JoinIdle join) {
  return Units(problem, join).Take();
}

bool LosesNothing(const PlanProblem& problem) {
  double bytes = 0;
  for (const PlanOperator& o : problem.operators) bytes += o.variants.at(1)[0].fixed_bytes;
  return bytes <= problem.memory_bytes;
}

}  // namespace pipelab
