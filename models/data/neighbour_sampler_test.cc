#include "models/data/neighbour_sampler.h"

#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "models/data/public_sampler_testing.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// Vertex 0 and so many neighbours.
CsrGraph Star(int32_t degree) {
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t v = 1; v <= degree; ++v) edges.push_back({0, v});
  return *CsrGraph::FromEdges(degree + 1, edges);
}

// The tail of a chi-square of `k` degrees of freedom (Wilson and Hilferty, PNAS 1931).
double TailOfChiSquare(double x, double k) {
  const double z = (std::cbrt(x / k) - (1 - 2 / (9 * k))) / std::sqrt(2 / (9 * k));
  return std::erfc(z / std::sqrt(2.0)) / 2;
}

// How likely counts as uneven as these are, if each of d places is in each of n draws of f with
// f / d. Counts of one draw are not independent, and their covariance makes the statistic
// (d - 1) / d sum (c - n p)^2 / (n p (1 - p)) one of d - 1 degrees of freedom.
double PValue(const std::vector<int64_t>& counts, int64_t draws, int fanout) {
  const double d = static_cast<double>(counts.size()), p = fanout / d;
  double sum = 0;
  for (int64_t c : counts) {
    const double off = static_cast<double>(c) - static_cast<double>(draws) * p;
    sum += off * off;
  }
  sum *= (d - 1) / d / (static_cast<double>(draws) * p * (1 - p));
  return TailOfChiSquare(sum, d - 1);
}

constexpr int kRuns = 100;
constexpr int64_t kDraws = 20000;
// All runs of a right sampler are above it with probability 0.99 (Bonferroni): at 0.01 for each run
// they would be so in 37 of 100 tests only.
constexpr double kLeast = 0.01 / kRuns;

struct UniformRun {
  int degree, fanout;
};
UniformRun RunOf(int r) {
  const int degree = 2 + r % 49;
  return {degree, std::min(1 + r * 7 % 20, degree - 1)};
}

TEST(NeighbourSampler, DrawsAreUniformIn100SeededRuns) {
  int below_one_percent = 0;
  for (int r = 0; r < kRuns; ++r) {
    const auto [degree, fanout] = RunOf(r);
    const CsrGraph star = Star(degree);
    std::vector<int64_t> counts(degree);
    std::vector<int32_t> chosen;
    for (int64_t step = 0; step < kDraws; ++step) {
      DrawNeighbours(star, /*seed=*/r, step, /*hop=*/0, /*v=*/0, fanout, &chosen);
      ASSERT_EQ(std::set<int32_t>(chosen.begin(), chosen.end()).size(), size_t(fanout));
      for (int32_t v : chosen) ++counts[v - 1];
    }
    const double p = PValue(counts, kDraws, fanout);
    EXPECT_GT(p, kLeast) << degree << " neighbours, " << fanout << " drawn";
    below_one_percent += p <= 0.01;
  }
  // Binomial(100, 0.01): more than 5 in one of 2,000 tests.
  EXPECT_LE(below_one_percent, 5);
}

TEST(NeighbourSampler, ThePublicDrawFailsTheSameCheck) {
  int failed = 0;
  for (int r = 0; r < kRuns; ++r) {
    const auto [degree, fanout] = RunOf(r);
    PublicGenerator generator(r + 1);
    std::vector<int64_t> counts(degree), places;
    for (int64_t i = 0; i < kDraws; ++i) {
      PublicDraw(&generator, degree, fanout, &places);
      for (int64_t place : places) ++counts[place];
    }
    failed += PValue(counts, kDraws, fanout) <= kLeast;
  }
  EXPECT_EQ(failed, kRuns);
}

// Not only places but sets: all 56 of three of eight.
TEST(NeighbourSampler, EverySetIsEquallyLikely) {
  const CsrGraph star = Star(8);
  std::map<std::set<int32_t>, int64_t> ours, theirs;
  PublicGenerator generator(1);
  std::vector<int32_t> chosen;
  std::vector<int64_t> places;
  for (int64_t step = 0; step < kDraws; ++step) {
    DrawNeighbours(star, 1, step, 0, 0, 3, &chosen);
    ++ours[{chosen.begin(), chosen.end()}];
    PublicDraw(&generator, 8, 3, &places);
    ++theirs[{places.begin(), places.end()}];
  }
  double sum = 0;
  const double even = kDraws / 56.0;
  for (const auto& [set, count] : ours)
    sum += (double(count) - even) * (double(count) - even) / even;
  EXPECT_EQ(ours.size(), 56u);
  EXPECT_GT(TailOfChiSquare(sum, 55), 0.001);
  EXPECT_EQ(theirs.size(), 55u);  // {5, 6, 7} never comes
}

GraphData Generated(int32_t vertices) {
  return GenerateGraph({PowerLawDegrees(vertices, 1.8, 2, 60, 3)}, 5);
}

// In 4 standard errors for each of 300 vertices: all of a right sampler's are, with probability
// 0.98.
TEST(NeighbourSampler, InclusionIsWhatTheFormulaSays) {
  const GraphData data = Generated(300);
  const CsrGraph& graph = data.graph;
  constexpr int64_t kSteps = 20000;
  constexpr double kTarget = 0.05;
  const std::vector<double> want =
      InclusionProbabilities(graph, std::vector<double>(300, kTarget), {4});
  std::vector<int64_t> counts(300);
  NeighbourSampler sampler(&graph, {4}, 9);
  const CounterRng rng(1, "targets");
  for (int64_t step = 0; step < kSteps; ++step) {
    std::vector<int32_t> targets;
    for (int32_t v = 0; v < 300; ++v) {
      if (rng.Uniform(step * 300 + v) < kTarget) targets.push_back(v);
    }
    const GraphSample sample = sampler.Sample(step, targets);
    for (int32_t v : sample.blocks[0].sources) ++counts[v];
  }
  for (int32_t v = 0; v < 300; ++v) {
    const double n = kSteps, error = std::sqrt(want[v] * (1 - want[v]) / n);
    EXPECT_NEAR(double(counts[v]) / n, want[v], 4 * error) << "vertex " << v;
  }
}

// Every edge is the one that the vertex's own draw says, and nothing is lost or doubled.
TEST(NeighbourSampler, ASampleIsTheDrawsOfItsVertices) {
  const GraphData data = Generated(500);
  const std::vector<int> fanouts = {7, 3, 2};
  NeighbourSampler sampler(&data.graph, fanouts, 4);
  for (int64_t step : {0, 1, 1000000}) {
    std::vector<int32_t> targets(40);
    for (int i = 0; i < 40; ++i) targets[i] = static_cast<int32_t>((i * 11 + step) % 500);
    const GraphSample sample = sampler.Sample(step, targets);
    ASSERT_EQ(sample.blocks.size(), 3u);
    std::vector<int32_t> known = targets, chosen;
    for (int hop = 0; hop < 3; ++hop) {
      const GraphBlock& b = sample.blocks[2 - hop];
      ASSERT_EQ(b.num_targets, static_cast<int32_t>(known.size()));
      ASSERT_TRUE(std::equal(known.begin(), known.end(), b.sources.begin()));
      for (int32_t i = 0; i < b.num_targets; ++i) {
        DrawNeighbours(data.graph, 4, step, hop, known[i], fanouts[hop], &chosen);
        ASSERT_EQ(b.offsets[i + 1] - b.offsets[i], static_cast<int32_t>(chosen.size()));
        for (size_t e = 0; e < chosen.size(); ++e) {
          ASSERT_EQ(b.sources[b.edges[b.offsets[i] + e]], chosen[e]);
        }
      }
      known = b.sources;
      EXPECT_EQ(std::set<int32_t>(known.begin(), known.end()).size(), known.size());
    }
  }
}

TEST(NeighbourSampler, HopsStepsAndSeedsDrawAnew) {
  const CsrGraph star = Star(40);
  std::set<std::vector<int32_t>> draws;
  std::vector<int32_t> chosen;
  for (uint64_t seed : {1, 2}) {
    for (int64_t step : {int64_t{0}, int64_t{1}, int64_t{1} << 40}) {
      for (int hop : {0, 1}) {
        DrawNeighbours(star, seed, step, hop, 0, 10, &chosen);
        draws.insert(chosen);
      }
    }
  }
  EXPECT_EQ(draws.size(), 12u);
  DrawNeighbours(star, 1, 0, 0, 0, kAllNeighbours, &chosen);
  EXPECT_EQ(chosen.size(), 40u);
}

TEST(GraphStore, EdgesAreSortedBothWaysAndOnce) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const CsrGraph graph,
                               CsrGraph::FromEdges(4, {{2, 0}, {0, 2}, {1, 1}, {0, 1}}));
  EXPECT_EQ(graph.num_edges(), 2);
  EXPECT_EQ(graph.neighbours_E, (std::vector<int32_t>{1, 2, 0, 0}));
  EXPECT_EQ(graph.offsets_V1, (std::vector<int64_t>{0, 2, 3, 4, 4}));
  EXPECT_THAT(CsrGraph::FromEdges(4, {{3, 4}}).status().message(),
              "edge 3 - 4: vertices are 0 to 3");
}

TEST(GraphStore, AGeneratedGraphHasItsDegrees) {
  const std::vector<int32_t> degrees = PowerLawDegrees(20000, 2.0, 3, 300, 1);
  const GraphData data = GenerateGraph({degrees}, 1);
  int64_t wanted = 0;
  for (int32_t d : degrees) wanted += d;
  // Loops and repeats go: few where no degree is near the root of the sum.
  EXPECT_LE(2 * data.graph.num_edges(), wanted);
  EXPECT_GE(2 * data.graph.num_edges(), wanted * 97 / 100);
  for (int32_t v = 0; v < 20000; ++v) ASSERT_LE(data.graph.degree(v), degrees[v] + 0);
  // Half of the stubs meet their own label, and a tenth of the rest.
  EXPECT_NEAR(SameLabelShare(data), 0.55, 0.03);
  EXPECT_NEAR(double(data.test.size()) / 20000, 0.2, 0.01);
}

}  // namespace
}  // namespace pipelab
