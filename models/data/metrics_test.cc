// Metrics against brute force and values by hand.
#include "models/data/metrics.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

TEST(AreaUnderRoc, ByHand) {
  EXPECT_EQ(AreaUnderRoc({0.1f, 0.9f, 0.4f}, {0, 1, 0}), 1);
  EXPECT_EQ(AreaUnderRoc({0.9f, 0.1f}, {0, 1}), 0);
  EXPECT_EQ(AreaUnderRoc({0.5f, 0.5f, 0.5f}, {0, 1, 1}), 0.5);
  EXPECT_EQ(AreaUnderRoc({0.1f, 0.4f, 0.35f, 0.8f}, {0, 0, 1, 1}), 0.75);
  EXPECT_EQ(AreaUnderRoc({1, 2}, {1, 1}), 0.5);
  EXPECT_EQ(AreaUnderRoc({}, {}), 0.5);
}

// Scores of few values, so that most pairs tie.
TEST(AreaUnderRoc, AllPairs) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const CounterRng rng(seed, "auc");
    const size_t n = 2 + rng.Below(0, 60), values = 1 + rng.Below(1, 20);
    std::vector<float> scores;
    std::vector<uint8_t> labels;
    for (size_t i = 0; i < n; ++i) {
      scores.push_back(static_cast<float>(rng.Below(10 + 2 * i, values)) / 7 - 1);
      labels.push_back(static_cast<uint8_t>(rng.Below(11 + 2 * i, 2)));
    }
    double won = 0, pairs = 0;
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        if (labels[i] != 1 || labels[j] != 0) continue;
        ++pairs;
        won += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
      }
    }
    EXPECT_DOUBLE_EQ(AreaUnderRoc(scores, labels), pairs == 0 ? 0.5 : won / pairs);
  }
}

TEST(AreaUnderRoc, MisuseDies) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_DEATH(AreaUnderRoc({nan, 1}, {0, 1}), "isnan");
  EXPECT_DEATH(AreaUnderRoc({1, 2}, {0, 2}), "2");
  EXPECT_DEATH(AreaUnderRoc({1}, {0, 1}), "1");
}

TEST(RSquared, ByHand) {
  EXPECT_EQ(RSquared({1, 2, 3}, {1, 2, 3}), 1);
  EXPECT_EQ(RSquared({1, 2, 3}, {2, 2, 2}), 0);
  EXPECT_DOUBLE_EQ(RSquared({1, 2, 3}, {3, 2, 1}), 1 - 8.0 / 2);
  EXPECT_DOUBLE_EQ(RSquared({0, 4}, {1, 4}), 1 - 1.0 / 8);
  EXPECT_EQ(RSquared({5, 5}, {1, 2}), 0);
}

TEST(Accuracy, ByHand) {
  EXPECT_EQ(Accuracy({1, 2, 3, 1, 0, 0, 5, 5, 4}, {1, 0, 1}), 1.0 / 3);  // the first of equals
  EXPECT_EQ(Accuracy({-1, -2}, {0}), 1);
  EXPECT_DEATH(Accuracy({1, 2, 3}, {0, 1}), "");
  EXPECT_DEATH(Accuracy({std::numeric_limits<float>::quiet_NaN(), 1}, {0}), "isnan");
  EXPECT_EQ(ArgMax(std::vector<double>{0.5, 0.7, 0.1}), 1);
}

TEST(LogSoftmax, ByHand) {
  const std::vector<double> p = LogSoftmax({1000.0f, 1000.0f, 998.0f});
  const double sum = 2 + std::exp(-2.0);
  EXPECT_NEAR(p[0], -std::log(sum), 1e-12);
  EXPECT_NEAR(p[2], -2 - std::log(sum), 1e-12);
}

TEST(MeanOf, ByHand) {
  const MeanWithError m = MeanOf(std::vector<double>{1, 2, 3, 6});
  EXPECT_EQ(m.mean, 3);
  EXPECT_DOUBLE_EQ(m.error, std::sqrt((4 + 1 + 0 + 9) / 3.0 / 4));
  EXPECT_EQ(MeanOf(std::vector<double>{7}).error, 0);
  EXPECT_EQ(MeanOf({}).mean, 0);
}

}  // namespace
}  // namespace pipelab
