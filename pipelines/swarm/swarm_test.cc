// The simulated swarm against closed forms, and what it must show.
#include "pipelines/swarm/swarm.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/cluster/device.h"
#include "pipelines/cluster/network.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/swarm/peer_trace.h"
#include "pipelines/swarm/swarm_costs.h"
#include "tools/base/status_matchers.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

constexpr Nanoseconds Seconds(int64_t n) { return Milliseconds(n * 1000); }
constexpr Nanoseconds Hours(int64_t n) { return Seconds(n * 3600); }

// A stage with a forward of 1 s and a backward of 3 s.
SwarmStage PlainStage() {
  SwarmStage stage;
  stage.forward.compute = Seconds(1);
  stage.backward.compute = Seconds(3);
  return stage;
}

SwarmOptions PlainSwarm(int stages, int in_flight, Nanoseconds duration) {
  SwarmOptions options;
  options.stages.assign(stages, PlainStage());
  options.in_flight = in_flight;
  options.duration = duration;
  return options;
}

PeerTrace Always(int peers, std::vector<double> speeds = {1}) {
  PeerTraceOptions options;
  options.peers = peers;
  options.speeds = std::move(speeds);
  return GeneratePeerTrace(options);
}

TEST(Swarm, OneMicroBatchTakesTheSumOfItsPassesAndMessages) {
  SwarmOptions options = PlainSwarm(3, 1, Seconds(2001));
  options.link = {Milliseconds(50), BytesPerSecond(100)};
  for (SwarmStage& stage : options.stages) {
    stage.forward.request = stage.forward.result = stage.backward.result = Bytes(20);
    stage.backward.request = Bytes(40);
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmFigures f, SimulateSwarm(options, Always(3)));
  // A stage: 4 s of passes, 1 s of bytes, four delays.
  EXPECT_EQ(f.micro_batches, static_cast<int64_t>(2000 / (3 * 5.2)));
  EXPECT_NEAR(f.device_use, 4 / (3 * 5.2), 0.01);
}

TEST(Swarm, ManyMicroBatchesTakeTheSlowestResource) {
  SwarmOptions options = PlainSwarm(3, 60, Hours(2));
  options.warm_up = Hours(1);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmFigures f, SimulateSwarm(options, Always(7)));
  EXPECT_NEAR(f.throughput, 2 / 4.0, 0.005);  // 3, 2 and 2 peers
  EXPECT_NEAR(f.device_use, 6.0 / 7, 0.01);
  EXPECT_DOUBLE_EQ(f.best, 0.5);
  EXPECT_DOUBLE_EQ(f.slowest, 0.5);
  // A link in that takes 3 x 2 s for a micro-batch is slower than the device.
  options.link.bandwidth = BytesPerSecond(10);
  options.stages[0].forward.request = Bytes(20);
  options.stages[0].backward.request = Bytes(40);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmFigures slow, SimulateSwarm(options, Always(6)));
  EXPECT_NEAR(slow.throughput, 2 / 6.0, 0.005);
}

TEST(Swarm, UnequalPeersServeAsTheirSpeeds) {
  // 24 peers of 1x, 2x and 4x on 4 stages: each stage has two of each.
  SwarmOptions options = PlainSwarm(4, 240, Hours(2));
  options.warm_up = Hours(1);
  const PeerTrace trace = Always(24, {1, 2, 4});
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmFigures f, SimulateSwarm(options, trace));
  EXPECT_DOUBLE_EQ(f.slowest, 14 / 4.0);
  EXPECT_GE(f.throughput, 0.95 * f.slowest);
  // Speeds that drift by a quarter are followed.
  options.drift = {Seconds(600), 0.25, 0.9};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmFigures drifting, SimulateSwarm(options, trace));
  EXPECT_GE(drifting.throughput, 0.85 * f.slowest);
  EXPECT_NE(drifting.throughput, f.throughput);
}

TEST(Swarm, CountsEveryGradientOnceWhoeverLeaves) {
  SwarmOptions options = PlainSwarm(3, 24, Hours(3));
  options.step = 16;
  options.joining = JoinRule::kNeediest;
  options.rebalance_every = Seconds(60);
  PeerTraceOptions coming;
  coming.peers = 12;
  coming.up = Seconds(300);
  coming.away = Seconds(60);
  for (const int64_t delay : {0, 1}) {
    for (coming.seed = 1; coming.seed <= 5; ++coming.seed) {
      options.update.delay = delay;
      const PeerTrace trace = GeneratePeerTrace(coming);
      PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmFigures f, SimulateSwarm(options, trace));
      EXPECT_GT(f.steps, 50);
      EXPECT_GT(f.lost_gradients, 0);
      EXPECT_GT(f.lost_requests, 0);
      // All that ended is in a step, but for what the last ones have begun.
      EXPECT_LE(f.micro_batches - f.steps * options.step, (delay + 2) * options.step);
      EXPECT_GE(f.micro_batches, f.steps * options.step);
      PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmFigures again, SimulateSwarm(options, trace));
      EXPECT_EQ(again.micro_batches, f.micro_batches);
      EXPECT_EQ(again.lost_gradients, f.lost_gradients);
    }
  }
}

TEST(Swarm, DelayedUpdatesHideAverages) {
  SwarmOptions options = PlainSwarm(2, 32, Hours(4));
  options.step = 16;
  options.link.bandwidth = BytesPerSecond(1000);
  for (SwarmStage& stage : options.stages) stage.gradients = Bytes(4000);
  const PeerTrace trace = Always(8);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmFigures now, SimulateSwarm(options, trace));
  options.update.delay = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmFigures delayed, SimulateSwarm(options, trace));
  EXPECT_GT(delayed.steps, now.steps * 5 / 4);
  EXPECT_NEAR(delayed.throughput, 1, 0.1);  // 4 peers of 4 s a stage
}

// 400 machines, of which one in eleven is away; //experiments:unreliable_peers has 32 hours.
TEST(Swarm, RebalancingMakesUpForPreemptions) {
  PeerTraceOptions coming;
  coming.up = Hours(6);
  coming.away = Seconds(2100);
  coming.duration = Hours(8);
  const PeerTrace trace = GeneratePeerTrace(coming);
  SwarmOptions options = PlainSwarm(32, 800, coming.duration);
  for (SwarmStage& stage : options.stages) {
    stage.forward.compute = Seconds(3);
    stage.backward.compute = Seconds(9);
    stage.state = Bytes(int64_t{7} << 30);  // two minutes of the link
  }
  options.link = {Milliseconds(1), BytesPerSecond(62.5e6)};
  options.warm_up = Hours(1);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmFigures none, SimulateSwarm(options, trace));
  EXPECT_GE(none.throughput / none.best, 0.80);
  EXPECT_LE(none.throughput / none.best, 0.86);
  EXPECT_EQ(none.moves, 0);
  options.joining = JoinRule::kNeediest;
  options.rebalance_every = Seconds(300);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmFigures slow, SimulateSwarm(options, trace));
  EXPECT_GE(slow.throughput / slow.best, 0.94);
  options.rebalance_every = Seconds(60);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmFigures quick, SimulateSwarm(options, trace));
  EXPECT_GE(quick.throughput, slow.throughput);
}

// Long requests make long traces cheap. With as many seconds of work in flight they give what short
// ones do: these are the queues that a stage lives on while it is slow.
TEST(Swarm, LongRequestsStandForManyShortOnes) {
  PeerTraceOptions coming;
  coming.peers = 100;
  coming.duration = Hours(8);
  coming.up = Hours(6);
  coming.away = Hours(1);
  const PeerTrace trace = GeneratePeerTrace(coming);
  for (const JoinRule joining : {JoinRule::kOwnStage, JoinRule::kNeediest}) {
    std::vector<double> shares;
    for (const int64_t tenths : {10, 100}) {
      SwarmOptions options = PlainSwarm(8, static_cast<int>(20000 / tenths), coming.duration);
      for (SwarmStage& stage : options.stages) {
        stage.forward.compute = Milliseconds(100 * tenths);
        stage.backward.compute = Milliseconds(300 * tenths);
      }
      options.warm_up = Hours(1);
      options.joining = joining;
      options.rebalance_every = Seconds(joining == JoinRule::kNeediest ? 300 : 0);
      PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmFigures f, SimulateSwarm(options, trace));
      shares.push_back(f.throughput / f.best);
    }
    EXPECT_NEAR(shares[0], shares[1], 0.03);
  }
}

// The square-cube law: passes grow with the cube of the width, messages with its square.
TEST(Swarm, WideLayersNeedTheNetworkLess) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec t4, LoadCluster("--cluster", "preemptible-t4"));
  const Machine machine{t4.device, NumberType::kFp16};
  for (const int delay : {0, 200}) {
    std::vector<double> use;
    for (const int64_t hidden : {768, 4096, 12288}) {
      BlockStageSizes sizes;
      sizes.hidden = hidden;
      PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmStage stage, BlockStage(sizes, machine));
      SwarmOptions options;
      options.stages.assign(3, stage);
      options.link = {Milliseconds(delay), t4.levels[0].connection.bandwidth.value};
      options.in_flight = 4 * 6;
      options.warm_up = stage.work() * 500;
      options.duration = options.warm_up * 3;
      PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmFigures f, SimulateSwarm(options, Always(6)));
      use.push_back(f.device_use);
      // No more than the link brings, of 8-bit numbers: in forward, and twice in backward.
      const double bound =
          ToSeconds(stage.work()) * 62.5e6 / (3 * (1 + 4.0 / 4096) * 2048.0 * hidden);
      EXPECT_LE(f.device_use, 1.01 * std::min(1.0, bound)) << hidden;
    }
    EXPECT_LT(use[0], use[1]);
    EXPECT_LT(use[1], use[2]);
    EXPECT_LE(use[0], 0.20);
    EXPECT_GE(use[2], delay == 0 ? 0.75 : 0.40);
  }
}

TEST(Swarm, WaitsForPeersAndGoesOn) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const PeerTrace trace,
      ParsePeerTrace("peer,speed,join,leave\n0,1,0 s,41 s\n0,1,41 s,44 s\n0,1,100 s,\n", "f"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmFigures f,
                               SimulateSwarm(PlainSwarm(1, 1, Milliseconds(140'500)), trace));
  EXPECT_EQ(f.micro_batches, 20);  // ten, one that is lost twice, ten
  EXPECT_EQ(f.lost_requests, 2);
}

TEST(Swarm, RefusesWhatItCannotSimulate) {
  const auto refusal = [](const SwarmOptions& options, const PeerTrace& trace) {
    return SimulateSwarm(options, trace).status();
  };
  EXPECT_THAT(refusal(PlainSwarm(0, 1, Hours(1)), Always(1)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at least one stage")));
  EXPECT_THAT(refusal(PlainSwarm(1, 0, Hours(1)), Always(1)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must be 1 to 100000")));
  EXPECT_THAT(refusal(PlainSwarm(1, 1, Nanoseconds(0)), Always(1)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the warm-up")));
  EXPECT_THAT(refusal(PlainSwarm(1, 1, Hours(1)), Always(1, {1e-9})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the slowest peer")));
}

}  // namespace
}  // namespace pipelab
