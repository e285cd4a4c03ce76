// The policies alone: shares of requests, moves, the best placement by brute force.
#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/swarm/rebalance.h"
#include "pipelines/swarm/routing.h"
#include "pipelines/swarm/updates.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

TEST(PeerRouter, GivesSharesInProportionToSpeedsInEveryStretch) {
  PeerRouter router(1);
  const std::vector<double> speeds = {1, 2, 4};
  for (int p = 0; p < 3; ++p) router.Add(p, speeds[p]);
  std::vector<int> requests(3);
  for (int n = 1; n <= 700; ++n) {
    ++requests[*router.Route(1)];
    for (int p = 0; p < 3; ++p) EXPECT_LE(std::abs(requests[p] - n * speeds[p] / 7), 1.5) << n;
  }
}

TEST(PeerRouter, FollowsMeasuredSpeeds) {
  PeerRouter router(1);
  router.Add(0, 1);
  router.Add(1, 1);
  router.Measured(1, /*work=*/6, /*seconds=*/2);
  EXPECT_DOUBLE_EQ(router.Speed(0), 1);
  EXPECT_DOUBLE_EQ(router.Speed(1), 3);  // the first sample counts in full
  router.Measured(1, 1, 1);
  EXPECT_DOUBLE_EQ(router.Speed(1), (0.9 * 0.1 * 3 + 0.1 * 1) / (0.9 * 0.1 + 0.1));
  int second = 0;
  for (int n = 0; n < 1000; ++n) second += *router.Route(1) == 1;
  EXPECT_NEAR(second, 1000 * router.Speed(1) / (1 + router.Speed(1)), 2);
}

TEST(PeerRouter, APeerThatComesIsTriedSoonAndOneThatGoesNoMore) {
  PeerRouter router(1);
  EXPECT_FALSE(router.Route(1).has_value());
  router.Add(0, 1);
  for (int n = 0; n < 50; ++n) router.Route(1);
  router.Add(1, 1);
  int second = 0;
  for (int n = 0; n < 4; ++n) second += *router.Route(1) == 1;
  EXPECT_EQ(second, 2);  // no rush to make up for the 50
  router.Remove(0);
  for (int n = 0; n < 5; ++n) EXPECT_EQ(*router.Route(1), 1);
}

StageLoad Stage(double queue, int first, const std::vector<double>& speeds) {
  StageLoad stage;
  stage.queue = queue;
  for (const double speed : speeds) stage.peers.push_back({first++, speed});
  return stage;
}

TEST(Rebalance, MovesFromTheLeastLoadedStageToTheMostLoadedOne) {
  const auto move = Rebalance({Stage(6, 0, {1, 1, 1}), Stage(9, 10, {1}), Stage(2, 20, {1, 1, 1})});
  ASSERT_TRUE(move.has_value());
  EXPECT_EQ(move->from, 2);
  EXPECT_EQ(move->to, 1);
  EXPECT_EQ(move->peer, 20);
  // A stage without peers is the most loaded one, whatever waits there.
  EXPECT_EQ(Rebalance({Stage(9, 0, {1, 1}), Stage(0, 10, {})})->to, 1);
}

TEST(Rebalance, LeavesWhatNoMoveMakesBetter) {
  EXPECT_FALSE(Rebalance({Stage(1, 0, {1, 1}), Stage(9, 10, {1})}).has_value());
  // The fast peer would leave too little behind.
  const auto move = Rebalance({Stage(1, 0, {4, 1, 0.5}), Stage(9, 10, {1})});
  ASSERT_TRUE(move.has_value());
  EXPECT_EQ(move->peer, 1);
  // Those on their way stay on it.
  StageLoad stage = Stage(1, 0, {1, 1, 1});
  stage.peers[0].settled = stage.peers[1].settled = false;
  EXPECT_EQ(Rebalance({stage, Stage(9, 10, {1})})->peer, 2);
}

TEST(StageToJoin, IsTheSlowestOne) {
  EXPECT_EQ(StageToJoin({Stage(0, 0, {1, 1}), Stage(0, 10, {1, 0.5}), Stage(9, 20, {2})}), 1);
}

double BruteForce(const std::vector<double>& speeds, const std::vector<double>& work) {
  const size_t stages = work.size();
  size_t placements = 1;
  for (size_t p = 0; p < speeds.size(); ++p) placements *= stages;
  double best = 0;
  for (size_t code = 0; code < placements; ++code) {
    std::vector<double> sums(stages);
    size_t rest = code;
    for (const double speed : speeds) {
      sums[rest % stages] += speed / work[rest % stages];
      rest /= stages;
    }
    best = std::max(best, *std::min_element(sums.begin(), sums.end()));
  }
  return best;
}

TEST(BestThroughput, IsBruteForces) {
  const CounterRng rng(5, "placements");
  uint64_t n = 0;
  for (int round = 0; round < 40; ++round) {
    const size_t stages = 2 + rng.Below(n++, 2);
    const size_t peers = 1 + rng.Below(n++, 8);
    std::vector<double> work;
    for (size_t s = 0; s < stages; ++s) work.push_back(1 + static_cast<double>(rng.Below(n++, 4)));
    // Exact for equal peers, whatever the stages take.
    const std::vector<double> equal(peers, 1.5);
    EXPECT_DOUBLE_EQ(BestThroughput(equal, work), BruteForce(equal, work));
    // And for speeds of which each divides the next one, and equal stages.
    std::vector<double> speeds;
    for (size_t p = 0; p < peers; ++p) speeds.push_back(std::exp2(rng.Below(n++, 3)));
    const std::vector<double> same(stages, 2);
    EXPECT_DOUBLE_EQ(BestThroughput(speeds, same), BruteForce(speeds, same));
  }
}

TEST(UpdateRule, DelaysOneStep) {
  EXPECT_TRUE(UpdateRule{0}.MayBegin(3, 3));
  EXPECT_FALSE(UpdateRule{0}.MayBegin(4, 3));
  EXPECT_TRUE(UpdateRule{1}.MayBegin(4, 3));
  EXPECT_FALSE(UpdateRule{1}.MayBegin(5, 3));
}

TEST(UpdateRule, EachStepHasOneVersion) {
  const UpdateRule late{/*delay=*/1, /*fresh_every=*/4};
  const int64_t versions[] = {0, 0, 1, 2, 4, 4, 5, 6, 8};
  for (int64_t step = 0; step < 9; ++step) {
    EXPECT_EQ(late.VersionOf(step), versions[step]) << step;
    EXPECT_EQ(UpdateRule{0}.VersionOf(step), step);
    EXPECT_EQ(UpdateRule{3}.VersionOf(step), std::max<int64_t>(0, step - 3)) << step;
    EXPECT_GE((UpdateRule{3, 4}.VersionOf(step)), step - step % 4) << step;
  }
  EXPECT_FALSE(late.MayBegin(4, 3));  // a fresh one waits
  EXPECT_TRUE(late.MayBegin(4, 4));
}

TEST(StepLedger, AveragesAStepWhenItHasEachGradientOnce) {
  StepLedger ledger(2, 2, UpdateRule{1});
  for (int m = 0; m < 4; ++m) EXPECT_EQ(ledger.Begin(), m);
  EXPECT_FALSE(ledger.MayBegin());
  for (const int64_t m : {0, 1, 2, 3}) {
    for (const int stage : {0, 1}) ledger.Count(stage, m);
  }
  ledger.Lose(1, 0);
  EXPECT_FALSE(ledger.MayAverage());  // though the step behind it is complete
  ledger.Count(1, 0);
  EXPECT_EQ(ledger.BeginAverage(), 0);
  EXPECT_FALSE(ledger.MayBegin());
  EXPECT_FALSE(ledger.MayAverage());  // one after the other
  ledger.EndAverage();
  EXPECT_TRUE(ledger.MayBegin());
  EXPECT_EQ(ledger.BeginAverage(), 1);
  EXPECT_DEATH(ledger.Count(0, 2), "");
  ledger.Begin();
  ledger.Count(0, 4);
  EXPECT_DEATH(ledger.Count(0, 4), "micro-batch 4 twice at stage 0");
  EXPECT_DEATH(ledger.Lose(1, 4), "was not counted");
}

}  // namespace
}  // namespace pipelab
