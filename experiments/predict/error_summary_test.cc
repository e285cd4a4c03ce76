#include "experiments/predict/error_summary.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace pipelab {
namespace {

std::vector<TimedPrediction> Of(const std::vector<double>& measured,
                                const std::vector<double>& predicted) {
  std::vector<TimedPrediction> all;
  for (size_t i = 0; i < measured.size(); ++i) all.push_back({"", measured[i], predicted[i]});
  return all;
}

TEST(RankPairs, ATieIsNotInOrder) {
  const RankingSummary s = RankPairs(Of({1, 1.05, 2, 3}, {10, 20, 20, 15}));
  EXPECT_EQ(s.pairs, 5);  // 1 and 1.05 are too near
  EXPECT_EQ(s.right, 2);  // 1 before 2 and 3
  EXPECT_EQ(s.ties, 1);   // 1.05 and 2
}

TEST(RankCorrelation, ByHand) {
  EXPECT_DOUBLE_EQ(RankCorrelation(Of({1, 2, 3, 4}, {10, 20, 30, 1000})), 1);
  EXPECT_DOUBLE_EQ(RankCorrelation(Of({1, 2, 3, 4}, {4, 3, 2, 1})), -1);
  // Differences of the ranks 0, 1, -1, 0: 1 - 6 * 2 / (4 * 15).
  EXPECT_DOUBLE_EQ(RankCorrelation(Of({1, 2, 3, 4}, {1, 3, 2, 4})), 0.8);
  // Equal values share their ranks: 0.5, 0.5, 2 and 0, 1, 2.
  EXPECT_NEAR(RankCorrelation(Of({5, 5, 6}, {1, 2, 3})), 1.5 / std::sqrt(1.5 * 2), 1e-12);
  EXPECT_EQ(RankCorrelation(Of({1, 2}, {1, 2})), 0);
  EXPECT_EQ(RankCorrelation(Of({1, 1, 1}, {1, 2, 3})), 0);
}

}  // namespace
}  // namespace pipelab
