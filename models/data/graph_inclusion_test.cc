// How often vertices come into samples of the theorem graph, over three hops, against SALIENT++'s
// formula (InclusionProbabilities). Given the vertices known before a hop, it is exact for each
// hop; given the targets alone, for the first. Skipped where the package is not in the cache
// (docs/data.md).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "models/data/neighbour_sampler.h"
#include "models/data/package_cache.h"
#include "models/data/theorem_graph.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kHops = 3;
constexpr int64_t kSamples = 200;
constexpr double kTarget = 0.01;

// For each vertex: how often it came, what was expected, and the variance of that.
struct Counts {
  explicit Counts(size_t vertices) : came(vertices), expected(vertices), variance(vertices) {}
  std::vector<double> came, expected, variance;

  void Expect(size_t v, double p) {
    expected[v] += p;
    variance[v] += p * (1 - p);
  }
};

// The fit of the vertices with a variance of at least 4, where a count is nearly normal.
struct Fit {
  int64_t vertices = 0, beyond = 0;  // beyond: more than 4 standard errors
  double squares = 0;                // mean of squared standard errors; 1 where all is right
  double came_over_expected = 0;     // of all vertices' sums
};

Fit FitOf(const Counts& counts) {
  Fit fit;
  double came = 0, expected = 0;
  for (size_t v = 0; v < counts.came.size(); ++v) {
    came += counts.came[v];
    expected += counts.expected[v];
    if (counts.variance[v] < 4) continue;
    const double off = (counts.came[v] - counts.expected[v]) / std::sqrt(counts.variance[v]);
    ++fit.vertices;
    fit.beyond += std::abs(off) > 4;
    fit.squares += off * off;
  }
  fit.squares /= static_cast<double>(fit.vertices);
  fit.came_over_expected = came / expected;
  return fit;
}

class Inclusion {
 public:
  Inclusion(const CsrGraph& graph, const std::vector<int>& fanouts)
      : graph_(graph), fanouts_(fanouts), missed_(graph.num_vertices()) {
    const size_t vertices = missed_.size();
    for (int h = 0; h < kHops; ++h) {
      of_known.emplace_back(vertices);
      of_formula.emplace_back(vertices);
      const auto hops = absl::MakeConstSpan(fanouts).first(h + 1);
      const std::vector<double> p =
          InclusionProbabilities(graph, std::vector<double>(vertices, kTarget), hops);
      for (size_t v = 0; v < vertices; ++v) {
        of_formula[h].expected[v] = kSamples * p[v];
        of_formula[h].variance[v] = kSamples * p[v] * (1 - p[v]);
      }
    }
  }

  void Add(const GraphSample& sample) {
    for (int h = 0; h < kHops; ++h) {
      const GraphBlock& hop = sample.blocks[kHops - 1 - h];
      ExpectOfKnown(absl::MakeConstSpan(hop.sources).first(hop.num_targets), h);
      for (int32_t v : hop.sources) {
        ++of_known[h].came[v];
        ++of_formula[h].came[v];
      }
    }
  }

  std::vector<Counts> of_known, of_formula;  // [hop]

 private:
  // Given the vertices that draw, draws are independent, and the formula's step is exact.
  void ExpectOfKnown(absl::Span<const int32_t> known, int h) {
    std::fill(missed_.begin(), missed_.end(), 1.0);
    for (int32_t u : known) {
      const double p = std::min(1.0, fanouts_[h] / static_cast<double>(graph_.degree(u)));
      for (int32_t v : graph_.neighbours(u)) missed_[v] *= 1 - p;
    }
    for (int32_t u : known) missed_[u] = 0;
    for (size_t v = 0; v < missed_.size(); ++v) of_known[h].Expect(v, 1 - missed_[v]);
  }

  const CsrGraph& graph_;
  const std::vector<int> fanouts_;
  std::vector<double> missed_;
};

TEST(NeighbourSampler, InclusionOverSeveralHopsOfTheTheoremGraph) {
  const auto dir = FindDebianPackage(MetamathPackage(), DefaultDataCache());
  if (absl::IsNotFound(dir.status())) GTEST_SKIP() << dir.status().message();
  ASSERT_THAT(dir, IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TextGraph text, LoadTheoremGraph(*dir));
  const std::vector<int> fanouts = {15, 10, 5};
  Inclusion inclusion(text.graph, fanouts);
  NeighbourSampler sampler(&text.graph, fanouts, 3);
  const CounterRng rng(5, "targets");
  const int32_t vertices = text.graph.num_vertices();
  for (int64_t step = 0; step < kSamples; ++step) {
    std::vector<int32_t> targets;
    for (int32_t v = 0; v < vertices; ++v) {
      if (rng.Uniform(step * vertices + v) < kTarget) targets.push_back(v);
    }
    inclusion.Add(sampler.Sample(step, targets));
  }
  for (int h = 0; h < kHops; ++h) {
    const Fit known = FitOf(inclusion.of_known[h]), formula = FitOf(inclusion.of_formula[h]);
    for (const Fit* fit : {&known, &formula}) {
      if (fit == &formula && h > 0) continue;
      // A normal count is beyond 4 standard errors once in 16,000 times; that of a rare vertex,
      // which is skew, more often.
      EXPECT_GT(fit->vertices, 18000);
      EXPECT_LT(static_cast<double>(fit->beyond), 0.0005 * static_cast<double>(fit->vertices))
          << "hop " << h + 1;
      EXPECT_NEAR(fit->squares, 1, 0.03) << "hop " << h + 1;
      EXPECT_NEAR(fit->came_over_expected, 1, 0.002) << "hop " << h + 1;
    }
    // Neighbours that a third vertex drew come together, and one that is known need not come again.
    // So fewer vertices come than the formula says, which takes them as independent.
    if (h == 0) continue;
    EXPECT_GT(formula.squares, 2) << "hop " << h + 1;
    EXPECT_NEAR(formula.came_over_expected, h == 1 ? 0.926 : 0.918, 0.003) << "hop " << h + 1;
  }
}

}  // namespace
}  // namespace pipelab
