#include "pipelines/planners/series_parallel.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

using Needs = std::vector<std::vector<int>>;

// "(0 [1|(2 3)] 4)"
std::string Text(const SeriesParallelNode& node) {
  if (node.kind == SeriesParallelNode::Kind::kNode) return absl::StrCat(node.node);
  const bool series = node.kind == SeriesParallelNode::Kind::kSeries;
  std::string text = series ? "(" : "[";
  for (size_t i = 0; i < node.children.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : (series ? " " : "|"), Text(node.children[i]));
  }
  return absl::StrCat(text, series ? ")" : "]");
}
std::string Tree(const Needs& needs) { return Text(SeriesParallelOf(needs).root); }

TEST(SeriesParallel, SmallGraphs) {
  EXPECT_EQ(Tree({{}}), "0");
  EXPECT_EQ(Tree({{}, {0}, {1}}), "(0 1 2)");
  EXPECT_EQ(Tree({{}, {}}), "[0|1]");
  EXPECT_EQ(Tree({{}, {0}, {0}, {2}, {1, 3}}), "(0 [1|(2 3)] 4)");
  // A skip over an operator is in the chain's order already.
  EXPECT_EQ(Tree({{}, {0}, {0, 1}}), "(0 1 2)");
  // All of one side to all of the other: no operator lies between.
  EXPECT_EQ(Tree({{}, {}, {0, 1}, {0, 1}}), "([0|1] [2|3])");
  // Listed from the end.
  EXPECT_EQ(Tree({{1}, {2}, {}}), "(2 1 0)");
}

TEST(SeriesParallel, TheNGetsOneOrder) {
  const SeriesParallel n = SeriesParallelOf({{}, {}, {0}, {0, 1}});
  EXPECT_EQ(Text(n.root), "([0|1] [2|3])");
  EXPECT_EQ(n.added_orders, 1);
  // Two branches with a link in the middle stay side by side before it and after it.
  const SeriesParallel link = SeriesParallelOf({{}, {0}, {1}, {}, {3}, {1, 4}});
  EXPECT_EQ(Text(link.root), "([(0 1)|(3 4)] [2|5])");
  EXPECT_EQ(link.added_orders, 2);  // 3 and 4 before 2
}

// Pairs (u, v) where u is before v.
using Pairs = std::set<std::pair<int, int>>;
std::vector<int> AddPairs(const SeriesParallelNode& node, Pairs* pairs) {
  if (node.kind == SeriesParallelNode::Kind::kNode) return {node.node};
  std::vector<int> all;
  for (const SeriesParallelNode& child : node.children) {
    EXPECT_NE(child.kind, node.kind);
    const std::vector<int> some = AddPairs(child, pairs);
    if (node.kind == SeriesParallelNode::Kind::kSeries) {
      for (int u : all) {
        for (int v : some) pairs->emplace(u, v);
      }
    }
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// The tree's order is the graph's, and as many pairs more as it says.
TEST(SeriesParallel, KeepsTheGraphsOrder) {
  CounterRng rng(7, "series parallel");
  uint64_t draw = 0;
  for (int round = 0; round < 300; ++round) {
    const int n = 1 + static_cast<int>(rng.Below(draw++, 10));
    const uint64_t density = 1 + rng.Below(draw++, 6);
    Needs needs(n);
    Pairs before;
    for (int v = 0; v < n; ++v) {
      for (int u = 0; u < v; ++u) {
        if (rng.Below(draw++, 8) >= density) continue;
        needs[v].push_back(u);
        before.emplace(u, v);
        for (int x = 0; x < u; ++x) {
          if (before.count({x, u}) > 0) before.emplace(x, v);
        }
      }
    }
    const SeriesParallel result = SeriesParallelOf(needs);
    Pairs pairs;
    std::vector<int> all = AddPairs(result.root, &pairs);
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), n);
    for (int v = 0; v < n; ++v) ASSERT_EQ(all[v], v);
    ASSERT_TRUE(std::includes(pairs.begin(), pairs.end(), before.begin(), before.end()));
    ASSERT_EQ(result.added_orders, static_cast<int64_t>(pairs.size() - before.size()));
    // Only a graph with an N in it gets orders.
    bool has_n = false;
    const auto ordered = [&](int u, int v) { return before.count({u, v}) > 0; };
    const auto apart = [&](int u, int v) { return u != v && !ordered(u, v) && !ordered(v, u); };
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) {
        for (int c = 0; c < n && !has_n; ++c) {
          for (int d = 0; d < n; ++d) {
            has_n |= ordered(a, c) && ordered(a, d) && ordered(b, d) && apart(a, b) &&
                     apart(c, d) && apart(b, c);
          }
        }
      }
    }
    ASSERT_EQ(result.added_orders > 0, has_n);
  }
}

}  // namespace
}  // namespace pipelab
