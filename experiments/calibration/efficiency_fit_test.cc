#include "experiments/calibration/efficiency_fit.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr double kPeak = 1e12;

double Seconds(const EfficiencyCurve& curve, double work) {
  return work / (kPeak * curve.At(work));
}

// A machine that takes 5 us, and for work what it would at 80% of the peak.
double TrueSeconds(double work) { return 5e-6 + work / (0.8 * kPeak); }

TEST(FitCurve, FollowsExactMeasurements) {
  std::vector<Measurement> m;
  for (double work = 1e4; work < 1e10; work *= 1.5) m.push_back({work, TrueSeconds(work)});
  const EfficiencyCurve curve = FitCurve(m, kPeak);
  EXPECT_THAT(CheckCurve(curve), IsOk());
  for (double work = 2e4; work < 5e8; work *= 1.37) {
    EXPECT_NEAR(Seconds(curve, work) / TrueSeconds(work), 1, 0.03) << work;
  }
  EXPECT_LT(SpreadAround(curve, m, kPeak), 0.06);
  // Below the first size time is constant, beyond the last the share is.
  EXPECT_NEAR(Seconds(curve, 1), Seconds(curve, 1e4), 0.05 * Seconds(curve, 1e4));
  EXPECT_NEAR(curve.At(1e13), 0.8, 0.02);
}

TEST(FitCurve, GoesThroughTheMiddleOfNoiseAndShapes) {
  const CounterRng rng(1, "noise");
  std::vector<Measurement> m;
  for (int i = 0; i < 400; ++i) {
    const double work = 1e5 * std::pow(1e4, rng.Uniform(2 * i));
    m.push_back({work, TrueSeconds(work) * std::exp(0.3 * rng.Normal(1000 + i))});
  }
  const EfficiencyCurve curve = FitCurve(m, kPeak);
  EXPECT_THAT(CheckCurve(curve), IsOk());
  for (double work = 3e5; work < 3e8; work *= 2.3) {
    EXPECT_NEAR(Seconds(curve, work) / TrueSeconds(work), 1, 0.25) << work;
  }
  EXPECT_NEAR(SpreadAround(curve, m, kPeak), 0.3, 0.05);
}

TEST(FitCurve, TimesThatFallArePutTogether) {
  // The middle one takes longer than the largest: they meet at their geometric means.
  const EfficiencyCurve curve = FitCurve({{1e6, 20e-6}, {4e6, 90e-6}, {16e6, 40e-6}}, kPeak);
  EXPECT_THAT(CheckCurve(curve), IsOk());
  ASSERT_EQ(curve.points.size(), 2);
  EXPECT_EQ(curve.points[1].size, 8e6);
  EXPECT_NEAR(Seconds(curve, 8e6), 60e-6, 0.5e-6);
  EXPECT_NEAR(Seconds(curve, 1e6), 20e-6, 0.2e-6);
}

TEST(FitCurve, AnyMeasurementsMakeACurveThatChecks) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const CounterRng rng(seed, "any");
    std::vector<Measurement> m;
    for (uint64_t i = 0; i < 1 + rng.Below(0, 30); ++i) {
      m.push_back(
          {std::exp(30 * rng.Uniform(10 + 2 * i)), std::exp(-20 * rng.Uniform(11 + 2 * i))});
    }
    double peak = 0;
    for (const Measurement& one : m) peak = std::max(peak, one.work / one.seconds);
    const EfficiencyCurve curve = FitCurve(m, peak);
    EXPECT_THAT(CheckCurve(curve), IsOk()) << seed;
  }
}

TEST(FitCurve, OneMeasurementAndEqualTimes) {
  EXPECT_EQ(FitCurve({{1e6, 20e-6}}, kPeak).points.size(), 1);
  // Four sizes that take the same time are one bin.
  const EfficiencyCurve curve =
      FitCurve({{1e6, 20e-6}, {2e6, 20e-6}, {4e6, 20e-6}, {8e6, 20e-6}}, kPeak);
  EXPECT_THAT(CheckCurve(curve), IsOk());
  EXPECT_NEAR(Seconds(curve, 1e6), 20e-6, 0.1e-6);
}

TEST(FitCurve, NoShareIsAboveOne) {
  const EfficiencyCurve curve = FitCurve({{1e6, 0.9e-6}, {1e8, 0.9e-3}}, kPeak);
  EXPECT_EQ(curve.points[0].share, 1);
}

}  // namespace
}  // namespace pipelab
