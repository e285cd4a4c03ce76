#include "tests/support/random_graphs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/plan_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

class Maker {
 public:
  Maker(int operators, uint64_t seed) : size_(operators), draw_(seed, "random graph") {}

  std::vector<PlanEdge> Make(GraphShape shape) {
    switch (shape) {
      case GraphShape::kForkJoin:
        Branches(2 + static_cast<int>(draw_.Below(4)), size_ - 1);
        break;
      case GraphShape::kNested:
        Nested(-1, size_);
        break;
      case GraphShape::kSkips:
        for (int v = 1; v < size_; ++v) Connect(v - 1, v);
        for (int v = 0; v < size_; ++v) {
          const int to = v + 2 + static_cast<int>(draw_.Below(11));
          if (draw_.Below(4) == 0 && to < size_) Connect(v, to);
        }
        break;
      case GraphShape::kLayered:
        Layered();
        break;
      case GraphShape::kIslands:
        for (int v = 1; v < size_; ++v) {
          if (draw_.Below(6) != 0) Connect(v - 1, v);
        }
        break;
      case GraphShape::kCells:
        Cells();
        break;
    }
    return std::move(edges_);
  }

 private:
  void Connect(int from, int to) { edges_.push_back({from, to, 0}); }

  // From operator 0 on; the last joins them.
  void Branches(int branches, int last) {
    for (int b = 0, v = 1; b < branches; ++b) {
      const int end = 1 + (last - 1) * (b + 1) / branches;
      if (v == end) continue;
      Connect(0, v);
      for (++v; v < end; ++v) Connect(v - 1, v);
      Connect(end - 1, last);
    }
  }

  // `count` operators from `next_` on, in series behind `before`; the last of them.
  int Nested(int before, int count) {
    while (count > 0) {
      if (count < 5 || draw_.Below(3) == 0) {
        if (before >= 0) Connect(before, next_);
        before = next_++;
        --count;
        continue;
      }
      const int inside = 2 + static_cast<int>(draw_.Below(count - 3));
      const int first = inside / 2;
      const int fork = next_++;
      if (before >= 0) Connect(before, fork);
      const int left = Nested(fork, first), right = Nested(fork, inside - first);
      const int join = next_++;
      Connect(left, join);
      Connect(right, join);
      before = join;
      count -= inside + 2;
    }
    return before;
  }

  void Layered() {
    std::vector<int> before;
    for (int v = 0; v < size_;) {
      std::vector<int> layer;
      for (int64_t width = 1 + draw_.Below(4); width > 0 && v < size_; --width, ++v) {
        layer.push_back(v);
        if (before.empty()) continue;
        const auto first = static_cast<size_t>(draw_.Below(static_cast<int64_t>(before.size())));
        Connect(before[first], v);
        if (before.size() > 1 && draw_.Below(2) == 0)
          Connect(before[(first + 1) % before.size()], v);
      }
      before = std::move(layer);
    }
  }

  void Cells() {
    int join = 0, earlier = -1;
    for (int v = 1; v < size_;) {
      const int branches = 3 + static_cast<int>(draw_.Below(4));
      std::vector<int> ends;
      for (int b = 0; b < branches && v < size_; ++b) {
        Connect(b % 2 == 1 && earlier >= 0 ? earlier : join, v);
        int end = v++;
        for (int64_t more = draw_.Below(3); more > 0 && v < size_; --more, ++v) {
          Connect(end, v);
          end = v;
        }
        ends.push_back(end);
      }
      if (v == size_) break;
      for (int end : ends) Connect(end, v);
      earlier = join;
      join = v++;
    }
  }

  const int size_;
  Draw draw_;
  int next_ = 0;
  std::vector<PlanEdge> edges_;
};

}  // namespace

std::vector<PlanEdge> RandomEdges(GraphShape shape, int operators, uint64_t seed) {
  return Maker(operators, seed).Make(shape);
}

std::vector<PlanEdge> ChainsSideBySide(int chains, int length) {
  std::vector<PlanEdge> edges;
  for (int v = 0; v < chains * length; ++v) {
    if (v % length != 0) edges.push_back({v - 1, v, 0});
  }
  return edges;
}

PlanProblem WithRandomCosts(std::vector<PlanEdge> edges, int operators, uint64_t seed) {
  Draw draw(seed, "random costs");
  PlanProblem p;
  p.devices = 8;
  p.micro_batches = 64;
  p.bandwidth = 1;
  p.edges = std::move(edges);
  for (PlanEdge& edge : p.edges) edge.bytes = static_cast<double>(draw.Below(6));
  for (int v = 0; v < operators; ++v) {
    PlanOperator o;
    o.id = absl::StrCat(v);
    PlanVariant plain;
    plain.name = "plain";
    plain.time = 1 + static_cast<double>(draw.Below(10));
    plain.parameter_bytes = static_cast<double>(draw.Below(21));
    plain.in_flight_bytes = static_cast<double>(draw.Below(5));
    plain.fixed_bytes = static_cast<double>(draw.Below(5));
    o.variants[1] = {plain};
    p.operators.push_back(o);
  }
  EXPECT_THAT(FinishProblem(&p, "random graph"), IsOk());
  return p;
}

PlanProblem RandomGraph(GraphShape shape, int operators, uint64_t seed) {
  PlanProblem p = WithRandomCosts(RandomEdges(shape, operators, seed), operators, seed);
  Draw draw(seed, "random machine");
  p.devices = 2 + draw.Below(7);
  p.bandwidth = 1 << draw.Below(5);
  if (draw.Below(2) == 0) return p;
  double bytes = 0;
  for (const PlanOperator& o : p.operators) {
    const PlanVariant& v = o.variants.at(1)[0];
    bytes += v.in_flight_bytes * static_cast<double>(p.devices) / 2 + v.fixed_bytes;
  }
  const double share = 0.6 + 0.1 * static_cast<double>(draw.Below(12));
  p.memory_bytes = std::floor(bytes / static_cast<double>(p.devices) * share);
  return p;
}

}  // namespace pipelab
