#include "experiments/mining/judge.h"

#include "gtest/gtest.h"

namespace pipelab {
namespace {

TEST(Judge, CountsBothWays) {
  const MiningTruth truth = {{0, 5}, {1, 6}, {2, 7}, {3, 8}};
  const MiningScore s = Judge({{0, 5, 1.0f}, {1, 7, 2.0f}, {2, 7, 3.0f}}, truth);
  EXPECT_DOUBLE_EQ(s.precision(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(s.recall(), 0.5);
  EXPECT_DOUBLE_EQ(s.f1(), 4.0 / 7);
  EXPECT_EQ(Judge({}, {}).f1(), 0);
}

TEST(BestScore, StopsBeforeWrongPairs) {
  const MiningTruth truth = {{0, 5}, {1, 6}};
  const MiningScore s = BestScore({{0, 5, 3.0f}, {1, 6, 2.0f}, {2, 9, 1.0f}}, truth);
  EXPECT_DOUBLE_EQ(s.f1(), 1);
}

}  // namespace
}  // namespace pipelab
