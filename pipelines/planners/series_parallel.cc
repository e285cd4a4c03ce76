#include "pipelines/planners/series_parallel.h"

#include <algorithm>
#include <utility>

namespace pipelab {
namespace {

using Node = SeriesParallelNode;
using Nodes = std::vector<int>;

class Decomposition {
 public:
  explicit Decomposition(const std::vector<std::vector<int>>& needs)
      : before_(needs.size(), std::vector<char>(needs.size())) {
    std::vector<int> missing(needs.size());
    std::vector<std::vector<int>> feeds(needs.size());
    for (size_t v = 0; v < needs.size(); ++v) {
      missing[v] = static_cast<int>(needs[v].size());
      for (int u : needs[v]) feeds[u].push_back(static_cast<int>(v));
      if (needs[v].empty()) order_.push_back(static_cast<int>(v));
    }
    for (size_t i = 0; i < order_.size(); ++i) {
      const int v = order_[i];
      for (int u : needs[v]) {
        before_[u][v] = 1;
        for (size_t x = 0; x < needs.size(); ++x) before_[x][v] |= before_[x][u];
      }
      for (int w : feeds[v]) {
        if (--missing[w] == 0) order_.push_back(w);
      }
    }
  }

  Node Make(const Nodes& nodes) {
    Node result;
    if (nodes.size() == 1) {
      result.node = nodes[0];
      return result;
    }
    std::vector<Nodes> parts = Components(nodes, /*ordered=*/true);
    result.kind = Node::Kind::kParallel;
    if (parts.size() == 1) {
      parts = Components(nodes, /*ordered=*/false);
      result.kind = Node::Kind::kSeries;
      if (parts.size() == 1) parts = Cut(nodes);
    }
    for (const Nodes& part : parts) {
      Node child = Make(part);
      if (child.kind != result.kind) {
        result.children.push_back(std::move(child));
        continue;
      }
      for (Node& grandchild : child.children) result.children.push_back(std::move(grandchild));
    }
    return result;
  }

  const Nodes& order() const { return order_; }
  int64_t added() const { return added_; }

 private:
  bool Ordered(int u, int v) const { return before_[u][v] != 0 || before_[v][u] != 0; }

  // Connected by pairs that are ordered, or by pairs that are not; by their first nodes in the
  // topological order, which `nodes` are in.
  std::vector<Nodes> Components(const Nodes& nodes, bool ordered) const {
    std::vector<Nodes> parts;
    std::vector<char> seen(nodes.size());
    for (size_t first = 0; first < nodes.size(); ++first) {
      if (seen[first] != 0) continue;
      std::vector<size_t> part = {first};
      seen[first] = 1;
      for (size_t i = 0; i < part.size(); ++i) {
        for (size_t j = 0; j < nodes.size(); ++j) {
          if (seen[j] != 0 || Ordered(nodes[part[i]], nodes[j]) != ordered) continue;
          seen[j] = 1;
          part.push_back(j);
        }
      }
      std::sort(part.begin(), part.end());
      parts.emplace_back();
      for (size_t i : part) parts.back().push_back(nodes[i]);
    }
    return parts;
  }

  // Longest path, in nodes of the set, from its sources (`down`: to its sinks).
  std::vector<int> Levels(const Nodes& nodes, bool down) const {
    const int size = static_cast<int>(nodes.size());
    std::vector<int> level(size);
    for (int i = 0; i < size; ++i) {
      const int v = down ? size - 1 - i : i;
      for (int j = 0; j < i; ++j) {
        const int u = down ? size - 1 - j : j;
        const bool after =
            down ? before_[nodes[v]][nodes[u]] != 0 : before_[nodes[u]][nodes[v]] != 0;
        if (after) level[v] = std::max(level[v], level[u] + 1);
      }
    }
    if (down) {
      const int most = *std::max_element(level.begin(), level.end());
      for (int& l : level) l = most - l;
    }
    return level;
  }

  std::vector<Nodes> Cut(const Nodes& nodes) {
    int64_t fewest = -1;
    std::vector<Nodes> best;
    for (bool down : {false, true}) {
      const std::vector<int> level = Levels(nodes, down);
      const int levels = *std::max_element(level.begin(), level.end()) + 1;
      for (int cut = 1; cut < levels; ++cut) {
        std::vector<Nodes> sides(2);
        for (size_t i = 0; i < nodes.size(); ++i) sides[level[i] >= cut].push_back(nodes[i]);
        int64_t added = 0;
        for (int u : sides[0]) {
          for (int v : sides[1]) added += before_[u][v] == 0 ? 1 : 0;
        }
        if (fewest >= 0 && added >= fewest) continue;
        fewest = added;
        best = std::move(sides);
      }
    }
    added_ += fewest;
    return best;
  }

  std::vector<std::vector<char>> before_;  // [u][v]: v needs u, at once or through others
  Nodes order_;
  int64_t added_ = 0;
};

}  // namespace

SeriesParallel SeriesParallelOf(const std::vector<std::vector<int>>& needs) {
  Decomposition decomposition(needs);
  SeriesParallel result;
  result.root = decomposition.Make(decomposition.order());
  result.added_orders = decomposition.added();
  return result;
}

}  // namespace pipelab
