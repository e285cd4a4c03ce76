// Intervals of the bootstrap against the normal approximation, and what they are drawn over.
#include "models/data/translation_intervals.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/data/translation_baselines.h"

namespace pipelab {
namespace {

struct Case {
  TranslationCorpus corpus;
  std::vector<std::string> said;
};

// `strings` English strings in `locales` locales each; every fifth string is right in all.
Case Made(int strings, int locales) {
  Case c;
  for (int l = 0; l < locales; ++l) {
    c.corpus.locales.push_back(absl::StrCat("x", l));
    for (int s = 0; s < strings; ++s) {
      c.corpus.translations.push_back({l, absl::StrCat("name", s), absl::StrCat("word", s)});
      c.said.push_back(s % 5 == 0 ? absl::StrCat("word", s) : "wolf");
    }
  }
  return c;
}

// 1.96 deviations to either side of a share of `n` independent cases.
double NormalWidth(double share, int n) { return 2 * 1.96 * std::sqrt(share * (1 - share) / n); }

TEST(BootstrapIntervals, OfAShareAreTheNormalOnes) {
  const Case c = Made(1000, 1);
  const TranslationIntervals i = BootstrapIntervals(c.corpus, c.said, 2000, 1);
  EXPECT_NEAR(i.exact.high - i.exact.low, NormalWidth(0.2, 1000), 0.1 * NormalWidth(0.2, 1000));
  EXPECT_NEAR((i.exact.high + i.exact.low) / 2, 0.2, 0.005);
  int64_t at = 0;
  const TranslationQuality q = Evaluate(c.corpus, [&](const Translation&) { return c.said[at++]; });
  EXPECT_LT(i.chrf.low, q.chrf);
  EXPECT_GT(i.chrf.high, q.chrf);
  EXPECT_LT(i.chrf.high - i.chrf.low, 0.1);
}

// Sixteen locales that are right together are no sixteen cases.
TEST(BootstrapIntervals, AreDrawnOverStringsAndNotOverPairs) {
  const Case c = Made(250, 16);
  const TranslationIntervals i = BootstrapIntervals(c.corpus, c.said, 2000, 1);
  EXPECT_NEAR(i.exact.high - i.exact.low, NormalWidth(0.2, 250), 0.1 * NormalWidth(0.2, 250));
}

TEST(BootstrapIntervals, ArePointsWhereAllIsAlike) {
  Case c = Made(20, 3);
  for (size_t i = 0; i < c.said.size(); ++i) c.said[i] = c.corpus.translations[i].target;
  TranslationIntervals i = BootstrapIntervals(c.corpus, c.said, 40, 1);
  EXPECT_EQ(i.exact.low, 1);
  EXPECT_EQ(i.chrf.low, 1);
  c.said.assign(c.said.size(), "");
  i = BootstrapIntervals(c.corpus, c.said, 40, 1);
  EXPECT_EQ(i.exact.high, 0);
  EXPECT_EQ(i.chrf.high, 0);
}

TEST(BootstrapIntervals, AreAFunctionOfTheSeed) {
  const Case c = Made(101, 2);
  const TranslationIntervals a = BootstrapIntervals(c.corpus, c.said, 100, 1);
  const TranslationIntervals b = BootstrapIntervals(c.corpus, c.said, 100, 1);
  const TranslationIntervals other = BootstrapIntervals(c.corpus, c.said, 100, 2);
  EXPECT_EQ(a.chrf.low, b.chrf.low);
  EXPECT_EQ(a.chrf.high, b.chrf.high);
  EXPECT_NE(a.chrf.low, other.chrf.low);
}

}  // namespace
}  // namespace pipelab
