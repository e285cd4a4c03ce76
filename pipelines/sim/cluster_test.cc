// What a cluster does to a program's time: shared links, blocking transfers, devices of different
// speed, reductions by bytes.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/network.h"
#include "pipelines/sim/collective_timeline.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/sim_testing.h"
#include "tests/support/test_schedules.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

void ExpectNowhereEarlier(const std::vector<std::vector<int64_t>>& late,
                          const std::vector<std::vector<int64_t>>& early) {
  ASSERT_EQ(late.size(), early.size());
  for (size_t d = 0; d < late.size(); ++d) {
    ASSERT_EQ(late[d].size(), early[d].size());
    for (size_t i = 0; i < late[d].size(); ++i) ASSERT_GE(late[d][i], early[d][i]) << d << " " << i;
  }
}

// Random programs on chains, graphs, groups, replicas and slices.
template <typename Check>
void ForRandomPrograms(const Check& check) {
  uint64_t seed = 0;
  for (const RandomShape& shape : Shapes()) {
    for (int k = 0; k < 3; ++k) {
      const Program p = LowerOrDie(RandomOrder(shape, ++seed));
      CostTable costs = Costs(p.schedule);
      const CounterRng rng(seed, "costs");
      uint64_t n = 0;
      for (StageCost& c : costs.stages) {
        c.forward = Nanoseconds(static_cast<int64_t>(rng.Below(n++, 300)));
        c.backward_input = Nanoseconds(static_cast<int64_t>(rng.Below(n++, 300)));
        c.memory.gradients = Bytes(static_cast<int64_t>(rng.Below(n++, 3000)));
      }
      for (Bytes& b : costs.edge_bytes) b = Bytes(static_cast<int64_t>(rng.Below(n++, 3000)));
      costs.hop_latency = Nanoseconds(static_cast<int64_t>(rng.Below(n++, 40)));
      costs.bandwidth = BytesPerSecond(1e9 * static_cast<double>(1 + rng.Below(n++, 30)));
      for (bool overlap : {true, false}) {
        costs.overlap = costs.overlap_collectives = overlap;
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", overlap " << overlap);
        check(p, costs);
      }
    }
  }
}

TEST(Cluster, PrivateLinksAreTheDefault) {
  ForRandomPrograms([](const Program& p, const CostTable& costs) {
    CostTable links = costs;
    links.network =
        PrivateLinks(p.schedule.num_devices(), {"", costs.hop_latency, costs.bandwidth});
    EXPECT_EQ(Ends(p, links), Ends(p, costs));
    // Shared, but by pairs of infinite bandwidth elsewhere: still private.
    links.network.links.push_back({"spine", Nanoseconds(0), BytesPerSecond(0)});
    const int spine = static_cast<int>(links.network.links.size()) - 1;
    for (Route& route : links.network.routes) route.uses.push_back(spine);
    EXPECT_EQ(Ends(p, links), Ends(p, costs));
  });
}

TEST(Cluster, SharingIsNeverFasterAndDeterministic) {
  ForRandomPrograms([](const Program& p, const CostTable& costs) {
    const int devices = p.schedule.num_devices();
    const Link link{"", costs.hop_latency, costs.bandwidth};
    CostTable shared = costs, alone = costs;
    for (int kind = 0; kind < 3; ++kind) {
      if (kind == 0) shared.network = SharedPorts(devices, link, link);
      if (kind == 1) shared.network = SharedUplinks(devices, 2, link, link);
      if (kind == 2) {  // one bus
        for (Route& route : shared.network.routes) route.uses = {0};
      }
      alone.network = PrivateLinks(devices, Link());
      for (int from = 0; from < devices; ++from) {
        for (int to = 0; to < devices; ++to) {
          if (from == to) continue;
          const PathCost path = CostOfPath(shared.network, from, to);
          alone.network.links[alone.network.RouteOf(from, to).uses[0].link] = {"", path.latency,
                                                                               path.bandwidth};
        }
      }
      alone.reduce = shared.reduce = Nanoseconds(5);
      // Rings have links of their own, too.
      for (const std::vector<int>& devices : ProgramRings(p).devices) {
        RingRoute ring = RingOf(shared.network, devices);
        const BytesPerSecond bandwidth = BandwidthOf(shared.network, ring.uses);
        ring.uses = {static_cast<int>(alone.network.links.size())};
        alone.network.links.push_back({"ring", Nanoseconds(0), bandwidth});
        alone.network.rings[devices] = ring;
      }
      const auto ends = Ends(p, shared);
      ExpectNowhereEarlier(ends, Ends(p, alone));
      EXPECT_EQ(ends, Ends(p, shared));
      if (!costs.overlap) {
        CostTable overlapped = alone;
        overlapped.overlap = overlapped.overlap_collectives = true;
        ExpectNowhereEarlier(Ends(p, alone), Ends(p, overlapped));
      }
    }
  });
}

// On private links: every end is a sum or a maximum of what comes before it.
TEST(Cluster, MoreBandwidthLessLatencyAndFasterDevicesAreNeverLater) {
  ForRandomPrograms([](const Program& p, const CostTable& costs) {
    const auto ends = Ends(p, costs);
    CostTable better = costs;
    better.bandwidth = BytesPerSecond(costs.bandwidth.value() * 1.25);
    ExpectNowhereEarlier(ends, Ends(p, better));
    better = costs;
    better.hop_latency = Nanoseconds(costs.hop_latency.value() / 2);
    ExpectNowhereEarlier(ends, Ends(p, better));
    better = costs;
    better.device_speed.assign(p.schedule.num_devices(), 1);
    EXPECT_EQ(ends, Ends(p, better));
    better.device_speed[0] = 1.5;
    ExpectNowhereEarlier(ends, Ends(p, better));
  });
}

// Devices 0 and 1 send to 2 (10 bytes/ns), which needs both.
TEST(Cluster, TwoSendersShareAPort) {
  Schedule s = ChainOf(1, {"0F0 0B0", "1F0 1B0", "2F0 2B0"});
  s.stages = StageGraph::FromEdges(3, {{0, 2}, {1, 2}});
  const Program p = LowerOrDie(s, /*step=*/false);
  CostTable costs = Costs(s);
  const Link port{"", Nanoseconds(5), BytesPerSecond(10e9)};
  costs.network = SharedPorts(3, port, port);
  // 0F0 and 1F0 end at 100; both messages arrive 200 + 10 later instead of 100 + 10. 2F0 and 2B0
  // take 300, and the gradients share the port out of device 2.
  const auto ends = Ends(p, costs);
  EXPECT_EQ(ends[2].back(), 610);
  EXPECT_EQ(ends[0].back(), 610 + 210 + 200);
  EXPECT_EQ(ends[1].back(), ends[0].back());
  // Blocking: the same for the activations. The gradients leave one after another, each at full
  // bandwidth: 110 for the first, 220 for the second.
  costs.overlap = false;
  const auto blocking = Ends(p, costs);
  EXPECT_EQ(blocking[2].back(), 610 + 220);
  EXPECT_EQ(std::min(blocking[0].back(), blocking[1].back()), 610 + 110 + 200);
  EXPECT_EQ(std::max(blocking[0].back(), blocking[1].back()), 610 + 220 + 200);
}

// The whole pipeline goes through one bus of 1 byte/ns: with compute of no time the bus is always
// busy.
TEST(Cluster, ABusCarriesAllBytesOneAfterAnother) {
  for (const char* scheme : {"gpipe", "1f1b", "interleaved", "chimera"}) {
    for (int devices : {2, 4}) {
      const Program p = Made(scheme, devices, 8);
      CostTable costs = CostTable::Unit(p.schedule, Nanoseconds(0));
      for (Bytes& b : costs.edge_bytes) b = Bytes(100);
      costs.network = PrivateLinks(devices, {"", Nanoseconds(0), BytesPerSecond(1e9)});
      for (Route& route : costs.network.routes) route.uses = {0};
      const int64_t bytes = 100 * static_cast<int64_t>(p.messages.size());
      EXPECT_NEAR(static_cast<double>(Makespan(p, costs)), static_cast<double>(bytes),
                  static_cast<double>(p.messages.size()))
          << scheme << " " << devices;
    }
  }
}

// A chain of stages with times t: sum of t + (M - 1) longest t, for forwards and for backwards.
TEST(Cluster, AStragglerRulesGPipe) {
  const int p = 4, m = 8;
  const Program program = Made("gpipe", p, m);
  CostTable costs = Costs(program.schedule);
  costs.device_speed = {1, 0.5, 2, 0.8};
  // Forwards 100, 200, 50, 125; backwards 200, 400, 100, 250.
  EXPECT_EQ(Makespan(program, costs), 475 + 7 * 200 + 950 + 7 * 400);
  costs.device_speed = {1, 1, 1};
  EXPECT_THAT(Simulate(program, costs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("speeds of 3 devices")));
  costs.device_speed = {1, 1, 0, 1};
  EXPECT_THAT(Simulate(program, costs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("device 2: a speed of 0")));
}

// Chimera: every device holds two stages, each on two devices; the ring of two moves all bytes.
TEST(Cluster, ReductionsTakeTheirBytes) {
  LoweringOptions at_end;
  at_end.eager_reductions = false;
  const Program p = Lower(Made("chimera", 4, 4, /*step=*/true).schedule, at_end).value();
  ASSERT_EQ(p.reductions.size(), 4u);
  CostTable costs = Costs(p.schedule);
  costs.edge_bytes.assign(costs.edge_bytes.size(), Bytes(0));
  const auto total = [&] { return Makespan(p, costs); };
  const int64_t without = total();
  costs.bandwidth = BytesPerSecond(1e9);
  EXPECT_EQ(total(), without);
  for (StageCost& stage : costs.stages) stage.memory.gradients = Bytes(500);
  // Two reductions a device, one after another, each 2 (1/2) 500 bytes; all devices reach them
  // within what 1F1B-like ends leave.
  EXPECT_EQ(total(), without + 2 * 500);
  costs.reduce = Nanoseconds(11);
  EXPECT_EQ(total(), without + 2 * 511);
  costs.device_speed = {0.5, 0.5, 0.5, 0.5};  // steps too, but not reductions
  EXPECT_EQ(total(), 2 * without + 2 * 511);
}

// A link of a byte a second, and 16 GiB messages.
TEST(Cluster, RefusesTimesThatWouldOverflow) {
  const Program p = Made("chimera", 4, 4, /*step=*/true);
  CostTable costs = Costs(p.schedule);
  for (Bytes& b : costs.edge_bytes) b = Bytes(int64_t{1} << 34);
  const auto error = [&] { return std::string(Simulate(p, costs).status().message()); };
  costs.bandwidth = BytesPerSecond(1e9);
  EXPECT_EQ(error(), "");
  costs.bandwidth = BytesPerSecond(1);
  EXPECT_THAT(error(), HasSubstr("messages of 16 GiB from device 0 to device 1 at 1 B/s"));
  costs.network = PrivateLinks(4, {"", Nanoseconds(0), BytesPerSecond(1e9)});
  EXPECT_EQ(error(), "");
  costs.network.links[costs.network.RouteOf(1, 2).uses[0].link].bandwidth = BytesPerSecond(1);
  EXPECT_THAT(error(), HasSubstr("from device 1 to device 2 at 1 B/s take longer than"));
  for (Bytes& b : costs.edge_bytes) b = Bytes(0);
  EXPECT_EQ(error(), "");
  for (StageCost& stage : costs.stages) stage.memory.gradients = Bytes(int64_t{1} << 36);
  EXPECT_THAT(error(), HasSubstr("a collective of devices 1,2, each of which sends 64 GiB, take"));
  costs.network = Network();
  costs.bandwidth = BytesPerSecond(1e9);
  costs.device_speed = {1, 1e-200, 1, 1};
  EXPECT_THAT(error(), HasSubstr("on a device of speed 1e-200 takes longer than"));
  costs.device_speed.clear();
  costs.stages[2].forward = Nanoseconds(int64_t{1} << 60);
  EXPECT_THAT(error(), HasSubstr("stage 2: an action of "));
}

TEST(Cluster, RefusesANetworkThatDoesNotFit) {
  const Program p = Made("1f1b", 4, 4);
  CostTable costs = Costs(p.schedule);
  costs.network = PrivateLinks(3, Link());
  EXPECT_THAT(Simulate(p, costs), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("the network has 3 devices, the schedule 4")));
  costs.network = PrivateLinks(4, Link());
  costs.network.RouteOf(1, 2).uses = {99};
  EXPECT_THAT(Simulate(p, costs), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("device 1 to device 2 has an unknown link")));
}

}  // namespace
}  // namespace pipelab
