#include "experiments/compare/compare_folders.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "experiments/compare/byte_equal.h"
#include "experiments/compare/noise.h"
#include "experiments/report/report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

// Pairs of a and b in order.
double U(const std::vector<double>& a, const std::vector<double>& b) {
  double u = 0;
  for (const double x : a) {
    for (const double y : b) u += x > y ? 1 : x == y ? 0.5 : 0;
  }
  return u;
}

// The share of all ways to divide the values among the two that are as far from the middle.
double BruteForceP(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all = a;
  all.insert(all.end(), b.begin(), b.end());
  std::vector<bool> of_a(all.size(), false);
  std::fill(of_a.end() - static_cast<int64_t>(a.size()), of_a.end(), true);
  const double middle = static_cast<double>(a.size() * b.size()) / 2,
               away = std::abs(U(a, b) - middle);
  double ways = 0, as_far = 0;
  do {
    std::vector<double> x, y;
    for (size_t i = 0; i < all.size(); ++i) (of_a[i] ? x : y).push_back(all[i]);
    ++ways;
    if (std::abs(U(x, y) - middle) >= away) ++as_far;
  } while (std::next_permutation(of_a.begin(), of_a.end()));
  return as_far / ways;
}

TEST(NoiseTest, ExactAgainstAllDivisions) {
  const CounterRng rng(1, "noise");
  for (uint64_t draw = 0; draw < 40; ++draw) {
    std::vector<double> a, b;
    for (uint64_t i = 0; i < 5 + draw % 3; ++i) a.push_back(rng.Normal(100 * draw + i));
    for (uint64_t i = 0; i < 5 + draw % 2; ++i)
      b.push_back(rng.Normal(100 * draw + 50 + i) + draw % 4);
    EXPECT_NEAR(CompareSamples(a, b).p_value, BruteForceP(a, b), 1e-12) << draw;
  }
}

TEST(NoiseTest, ApproximationIsNearTheExactOne) {
  const CounterRng rng(2, "noise");
  for (uint64_t draw = 0; draw < 20; ++draw) {
    std::vector<double> a, b;
    for (uint64_t i = 0; i < 20; ++i) {
      a.push_back(rng.Normal(100 * draw + i));
      b.push_back(rng.Normal(100 * draw + 50 + i) + 0.1 * double(draw));
    }
    const double exact = CompareSamples(a, b).p_value;
    std::vector<double> ties = a;
    ties.push_back(a[0]);  // a tie, and one more: the approximation
    EXPECT_NEAR(CompareSamples(ties, b).p_value, exact, 0.15) << draw;
  }
}

// About one in a hundred samples of one distribution is told apart, and of those moved by two
// deviations nearly all.
TEST(NoiseTest, OneInAHundredIsAFalseAlarm) {
  const CounterRng rng(3, "noise");
  int alarms = 0, missed = 0;
  constexpr int kDraws = 2000;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    std::vector<double> a, b, moved;
    for (uint64_t i = 0; i < 10; ++i) {
      a.push_back(rng.Normal(100 * draw + i));
      b.push_back(rng.Normal(100 * draw + 50 + i));
      moved.push_back(b.back() + 2);
    }
    alarms += CompareSamples(a, b).same ? 0 : 1;
    missed += CompareSamples(a, moved).same ? 1 : 0;
  }
  EXPECT_LE(alarms, kDraws / 50);
  EXPECT_LE(missed, kDraws / 10);
}

TEST(NoiseTest, FewOrEqualValues) {
  EXPECT_FALSE(CompareSamples({1, 2, 3, 4}, {1, 2, 3, 4, 5}).enough);
  EXPECT_EQ(CompareSamples({1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}).p_value, 1);
  EXPECT_NEAR(CompareSamples({1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}).p_value, 2.0 / 252, 1e-12);
  const Spread s = SpreadOf({4, 1, 3, 2, 5});
  EXPECT_EQ(s.median, 3);
  EXPECT_EQ(s.first_quartile, 2);
  EXPECT_EQ(s.third_quartile, 4);
  EXPECT_EQ(SpreadOf({}).count, 0);
}

struct Sample {
  std::string scheme = "1f1b";
  int steps = 5;
  double bubble = 25;
  std::vector<double> times = {1, 2, 3, 4, 5, 6, 7, 8};
  double alone = 1;
};

std::string WriteRun(const std::string& folder, const Sample& run) {
  ReportOptions options;
  options.name = "study";
  Report report(options);
  report.AddConfig("steps", run.steps);
  Table t("t", "T");
  t.AddKey("scheme");
  t.AddColumn({"time", "time", "", "ms", Origin::kMeasured, 1});
  t.AddColumn({"alone", "alone", "", "ms", Origin::kMeasured, 1});
  t.AddColumn({"bubble", "bubble", "", "%", Origin::kSimulated, 1});
  t.AddRow({Label(run.scheme), Measured(SpreadOf(run.times).median).WithSamples(run.times),
            Measured(run.alone), Simulated(run.bubble)});
  report.AddTable(std::move(t));
  Claim c = OwnClaim("study.bubble", "the bubble is small");
  Found(&c, Origin::kSimulated, run.bubble);
  MetWithin(&c, 0, 30, "it is not");
  report.AddClaim(c);
  const std::string path = JoinPath(testing::TempDir(), folder);
  EXPECT_THAT(report.WriteTo(path), IsOk());
  return path;
}

MetricVerdict VerdictOf(const StudyComparison& study, const std::string& metric) {
  for (const MetricComparison& m : study.metrics) {
    if (m.metric == metric) return m.verdict;
  }
  ADD_FAILURE() << metric;
  return MetricVerdict::kEqual;
}

TEST(CompareTest, NoiseIsNoDifference) {
  Sample other;
  other.times = {1.1, 2.1, 2.9, 4.2, 4.9, 6.1, 7.2, 7.9};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ResultsComparison c,
                               CompareResults(WriteRun("a1", {}), WriteRun("b1", other)));
  ASSERT_EQ(c.studies.size(), 1u);
  EXPECT_TRUE(c.same());
  EXPECT_EQ(VerdictOf(c.studies[0], "time"), MetricVerdict::kNoise);
  EXPECT_EQ(VerdictOf(c.studies[0], "bubble"), MetricVerdict::kEqual);
  EXPECT_TRUE(c.studies[0].settings.empty());
  EXPECT_THAT(ComparisonText(c), HasSubstr("1 same within noise, 2 equal"));
  EXPECT_THAT(ComparisonText(c), HasSubstr("Nothing differs beyond noise."));
}

TEST(CompareTest, NamesWhatDiffers) {
  Sample other;
  other.steps = 6;
  other.bubble = 40;
  other.times = {11, 12, 13, 14, 15, 16, 17, 18};
  other.alone = 2;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ResultsComparison c,
                               CompareResults(WriteRun("a2", {}), WriteRun("b2", other)));
  EXPECT_FALSE(c.same());
  const StudyComparison& study = c.studies[0];
  ASSERT_EQ(study.settings.size(), 1u);
  EXPECT_EQ(study.settings[0].name, "steps");
  EXPECT_EQ(study.settings[0].b, "6");
  ASSERT_EQ(study.claims.size(), 1u);
  EXPECT_EQ(study.claims[0].a, "met, 25");
  EXPECT_EQ(study.claims[0].b, "missed, 40");
  EXPECT_EQ(VerdictOf(study, "time"), MetricVerdict::kDiffers);
  EXPECT_EQ(VerdictOf(study, "bubble"), MetricVerdict::kDiffers);
  EXPECT_EQ(VerdictOf(study, "alone"), MetricVerdict::kUntold);
  const std::string text = ComparisonText(c);
  EXPECT_THAT(text, HasSubstr("+60.00 %"));
  EXPECT_THAT(text, HasSubstr("cannot be told"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const nlohmann::json json, ParseJson(ComparisonJson(c), "json"));
  EXPECT_FALSE(json["same"].get<bool>());
  EXPECT_EQ(json["studies"][0]["metrics"][0]["verdict"], "differs");
  EXPECT_LT(json["studies"][0]["metrics"][0]["p_value"].get<double>(), 0.01);
}

TEST(CompareTest, RowsOfOneAloneAndFoldersOfFolders) {
  Sample other;
  other.scheme = "gpipe";
  WriteRun("a3/study", {});
  WriteRun("a3/elsewhere", {});
  WriteRun("b3/study", other);
  const std::string root = testing::TempDir();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ResultsComparison c,
                               CompareResults(JoinPath(root, "a3"), JoinPath(root, "b3")));
  ASSERT_EQ(c.studies.size(), 1u);
  EXPECT_EQ(c.studies[0].Count(MetricVerdict::kOnlyA), 3);
  EXPECT_EQ(c.studies[0].Count(MetricVerdict::kOnlyB), 3);
  EXPECT_THAT(c.only_a, testing::ElementsAre("elsewhere"));
  EXPECT_FALSE(c.same());
}

// Beyond the digits that machines must agree on, nothing differs.
TEST(CompareTest, DigitsBeyondTheTwelfthAreNoDifference) {
  Sample a, b, c;
  a.bubble = 25 + 1e-13;
  c.bubble = 25 + 1e-9;
  const std::string in_a = WriteRun("a4", a), in_b = WriteRun("b4", b), in_c = WriteRun("c4", c);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ResultsComparison near, CompareResults(in_a, in_b));
  EXPECT_TRUE(near.same());
  EXPECT_EQ(VerdictOf(near.studies[0], "bubble"), MetricVerdict::kEqual);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ResultsComparison far, CompareResults(in_c, in_b));
  EXPECT_EQ(VerdictOf(far.studies[0], "bubble"), MetricVerdict::kDiffers);
}

TEST(CompareBytesTest, MeasuredColumnsMayDiffer) {
  Sample other;
  other.times = {11, 12, 13, 14, 15, 16, 17, 18};
  WriteRun("a5/study", {});
  WriteRun("b5/study", other);
  const std::string a = JoinPath(testing::TempDir(), "a5"), b = JoinPath(testing::TempDir(), "b5");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ByteEqual same, CompareBytes(a, b));
  EXPECT_EQ(same.equal, 1);
  EXPECT_EQ(same.differ, 0);
  EXPECT_THAT(same.text, HasSubstr("study: equal, 1 values\n"));
  other.bubble = 40;
  WriteRun("b5/study", other);
  WriteRun("b5/more", {});
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ByteEqual differ, CompareBytes(a, b));
  EXPECT_EQ(differ.equal, 0);
  EXPECT_EQ(differ.differ, 2);
  EXPECT_THAT(differ.text, HasSubstr("more: only in B\n"));
  EXPECT_THAT(differ.text,
              HasSubstr("study: 1 lines differ, the first is 2: t,scheme=1f1b,bubble,%,40, A has: "
                        "t,scheme=1f1b,bubble,%,25\n"));
  EXPECT_THAT(differ.text, HasSubstr("byte for byte, in 0 of 2 studies.\n"));
}

// A study that has no inputs on one of the machines.
TEST(CompareBytesTest, WhatHasNoInputsIsNamed) {
  ReportOptions options;
  options.name = "study";
  Report report(options);
  Claim c = OwnClaim("study.bubble", "the bubble is small");
  NotMade(&c, "no inputs");
  report.AddClaim(c);
  const std::string without = JoinPath(testing::TempDir(), "a6");
  ASSERT_THAT(report.WriteTo(without), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ByteEqual r, CompareBytes(without, WriteRun("b6", {})));
  EXPECT_EQ(r.equal + r.differ, 0);
  EXPECT_EQ(r.not_compared, 1);
  EXPECT_THAT(r.text, HasSubstr("study: not compared: A: no inputs\n"));
}

TEST(CompareTest, RefusesWhatIsNoResult) {
  EXPECT_THAT(std::string(CompareResults("/none", "/none").status().message()),
              HasSubstr("/none: there is no such folder"));
  EXPECT_THAT(std::string(CompareResults("/proc", "/proc").status().message()),
              HasSubstr("/proc: holds no result"));
}

}  // namespace
}  // namespace pipelab
