// Against the simulator, over the catalogue's schemes and over graphs of stages.
#include "pipelines/sim/order_walk.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/vocabulary.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/test_schedules.h"

namespace pipelab {
namespace {

bool CanWalk(const Schedule& s) {
  bool alone =
      s.num_slices == 1 && s.micro_batches_of_stage.empty() && s.stages.AllGradientsAreOwn();
  for (const auto& replica : s.placement.groups) {
    for (const std::vector<int>& group : replica) alone = alone && group.size() == 1;
  }
  return alone;
}

// Every stage and edge has costs of its own.
CostTable UnevenCosts(const Schedule& s) {
  CostTable costs = CostTable::Unit(s, Nanoseconds(100));
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    StageCost& c = costs.stages[stage];
    c.forward = Nanoseconds(100 + stage * 37 % 50);
    c.backward_input = Nanoseconds(120 + stage * 23 % 40);
    c.backward_weight = Nanoseconds(80 + stage * 11 % 70);
    c.recompute = c.forward;
    c.step = Nanoseconds(10);
    c.memory.kept = Bytes(500 + stage * 91 % 300);
    c.memory.kept_for_weight = Bytes(200 + stage * 17 % 100);
    c.memory.forward_peak = Bytes(900 + stage * 13 % 400);
    c.memory.forward_drop_peak = Bytes(800);
    c.memory.recompute_peak = Bytes(950);
    c.memory.backward_peak = Bytes(1100 + stage * 7 % 90);
    c.memory.backward_input_peak = Bytes(1000);
    c.memory.backward_weight_peak = Bytes(300);
  }
  for (size_t e = 0; e < costs.edge_bytes.size(); ++e) {
    costs.edge_bytes[e] = Bytes(static_cast<int64_t>(1000 + e * 53 % 400));
  }
  return costs;
}

// When the device's last compute action and its last weight gradient are over.
struct Ends {
  int64_t action = 0, gradient = 0;
};
Ends EndsOf(const DeviceSpans& spans) {
  Ends ends;
  for (const ExecutedInstruction& span : spans) {
    if (span.op != OpCode::kCompute) continue;
    ends.action = span.end_ns;
    if (span.action.kind == ActionKind::kBackward ||
        span.action.kind == ActionKind::kBackwardWeight) {
      ends.gradient = span.end_ns;
    }
  }
  return ends;
}

struct Counts {
  int devices = 0, same_time = 0, same_memory = 0;
};

// The walk against the simulator, on links between each pair that differ with it.
void Check(const Schedule& schedule, CostTable costs, int64_t latency, double bandwidth,
           Counts* counts, MessageCalls calls = MessageCalls::kNone) {
  const int n = schedule.num_devices();
  Program order;
  order.schedule = schedule;
  order.calls = calls;
  const auto hop = [&](int from, int to) {
    return PathCost{Nanoseconds(latency * (1 + (3 * from + 5 * to) % 4)),
                    BytesPerSecond(bandwidth * (1 + (from + 2 * to) % 3))};
  };
  const OrderWalk walk = WalkOrder(order, costs, hop);
  const std::vector<Bytes> peaks = OrderPeaks(order, costs);
  costs.network = PrivateLinks(n, Link());
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (from == to) continue;
      Link& link = costs.network.links[costs.network.RouteOf(from, to).uses[0].link];
      link.latency = hop(from, to).latency;
      link.bandwidth = hop(from, to).bandwidth;
    }
  }
  LoweringOptions options;
  options.calls = calls;
  if (calls != MessageCalls::kNone) options.eager_reductions = false;
  const Program program = Lower(schedule, options).value();
  const Trace trace = Simulate(program, costs).value();
  ASSERT_EQ(walk.devices.size(), trace.devices.size());
  ASSERT_EQ(peaks.size(), trace.devices.size());
  for (int d = 0; d < n; ++d) {
    SCOPED_TRACE(absl::StrCat("device ", d));
    const OrderWalk::Device& least = walk.devices[d];
    const Ends ends = EndsOf(SpansOf(program, trace, d));
    EXPECT_LE(least.last_gradient.value(), ends.gradient);
    EXPECT_LE(least.end, trace.makespan);
    EXPECT_LE(peaks[d], trace.devices[d].peak_activation);
    if (costs.overlap && !costs.steady_overlap && calls == MessageCalls::kNone) {
      EXPECT_LE(least.end.value(), ends.action);
    }
    if (latency == 0 && bandwidth == 0 && calls == MessageCalls::kNone) {
      EXPECT_EQ(least.end.value(), ends.action);
      EXPECT_EQ(least.last_gradient.value(), ends.gradient);
    }
    const bool no_messages = std::all_of(costs.edge_bytes.begin(), costs.edge_bytes.end(),
                                         [](Bytes b) { return b == Bytes(0); });
    if (no_messages) {
      EXPECT_EQ(peaks[d], trace.devices[d].peak_activation);
    }
    ++counts->devices;
    counts->same_time += least.last_gradient.value() == ends.gradient;
    counts->same_memory += peaks[d] == trace.devices[d].peak_activation;
  }
  for (size_t r = 0; r < walk.last_gradient.size(); ++r) {
    for (int stage = 0; stage < schedule.num_stages(); ++stage) {
      const int d = schedule.placement.groups[r][stage][0];
      EXPECT_LE(walk.last_gradient[r][stage], walk.devices[d].last_gradient);
      EXPECT_GT(walk.last_gradient[r][stage], Nanoseconds(0));
    }
  }
}

void CheckAllLinks(const Schedule& schedule, Counts* counts) {
  for (const auto& [overlap, steady] :
       {std::make_pair(true, false), std::make_pair(true, true), std::make_pair(false, false)}) {
    CostTable costs = UnevenCosts(schedule);
    costs.overlap = overlap;
    costs.steady_overlap = steady;
    // Free; a tenth of an action; as long as one.
    for (const auto& [latency, bandwidth] :
         {std::make_pair(0, 0.0), std::make_pair(2, 100e9), std::make_pair(20, 10e9)}) {
      SCOPED_TRACE(absl::StrCat("overlap ", overlap, steady, ", latency ", latency));
      Check(schedule, costs, latency, bandwidth, counts);
    }
    for (Bytes& b : costs.edge_bytes) b = Bytes(0);
    Check(schedule, costs, 20, 10e9, counts);
  }
}

TEST(WalkOrder, IsNeverBeyondTheSimulator) {
  Counts counts;
  for (const Scheme& scheme : Catalog()) {
    if (scheme.asynchronous || (scheme.options & kForwardOnly) != 0) continue;  // no gradients
    int walked = 0;
    for (const int devices : {1, 2, 4, 6}) {
      for (const int micro_batches : {1, 4, 8, 12}) {
        for (const int virtual_stages : {0, 3}) {
          for (const bool recompute : {false, true}) {
            SchemeParams sizes;
            sizes.devices = devices;
            sizes.micro_batches = micro_batches;
            sizes.virtual_stages = virtual_stages;
            sizes.recompute = recompute;
            const absl::StatusOr<Schedule> schedule = MakeSchedule(scheme.name, sizes);
            if (!schedule.ok() || !CanWalk(*schedule)) continue;
            SCOPED_TRACE(absl::StrCat(std::string(scheme.name), " P=", devices, " M=",
                                      micro_batches, " V=", virtual_stages, " R=", recompute));
            CheckAllLinks(*schedule, &counts);
            ++walked;
          }
        }
      }
    }
    EXPECT_EQ(walked > 0, (scheme.options & kTokenSlices) == 0) << scheme.name;
  }
  // It is close: nearly always the same.
  EXPECT_GT(counts.same_time, counts.devices / 2);
  EXPECT_GT(counts.same_memory, counts.devices / 2);
}

// With gaps and gathers of a tenth and of a half of an action.
TEST(WalkOrder, IsNeverBeyondTheSimulatorInCalls) {
  Counts counts;
  for (const auto& [devices, virtual_stages, micro_batches] :
       {std::make_tuple(2, 1, 5), {4, 1, 3}, {4, 1, 12}, {3, 2, 6}, {4, 2, 4}, {4, 3, 12}}) {
    for (const bool recompute : {false, true}) {
      for (const bool forwards_first : {false, true}) {
        SchemeParams sizes;
        sizes.devices = devices;
        sizes.micro_batches = micro_batches;
        sizes.virtual_stages = virtual_stages == 1 ? 0 : virtual_stages;
        sizes.recompute = recompute;
        sizes.forwards_first = forwards_first && virtual_stages > 1;
        const Schedule schedule =
            MakeSchedule(virtual_stages == 1 ? "1f1b" : "interleaved", sizes).value();
        CostTable costs = UnevenCosts(schedule);
        costs.overlap = true;
        costs.divided_messages = true;
        costs.tensor_parallel = 2;
        for (const int gap : {10, 50}) {
          costs.launch_gap = Nanoseconds(gap);
          costs.message_gather = {Nanoseconds(gap), BytesPerSecond(100e9)};
          SCOPED_TRACE(absl::StrCat("P=", devices, " V=", virtual_stages, " M=", micro_batches));
          Check(schedule, costs, 20, 10e9, &counts,
                virtual_stages == 1 ? MessageCalls::kOneNeighbour : MessageCalls::kBothNeighbours);
        }
      }
    }
  }
  EXPECT_GT(counts.devices, 100);
}

TEST(WalkOrder, TakesGraphsOfStages) {
  Counts counts;
  for (RandomShape shape : Shapes()) {
    for (const bool split : {false, true}) {
      shape.split_backward = split;
      const Schedule schedule = RandomOrder(shape, /*seed=*/17);
      if (!CanWalk(schedule)) continue;
      CheckAllLinks(schedule, &counts);
    }
  }
  EXPECT_GT(counts.devices, 50);
}

// Stages that take a gradient by one edge and none by another (one barrier).
TEST(WalkOrder, TakesPartsOfAVocabulary) {
  Counts counts;
  for (const Scheme& scheme : Catalog()) {
    if (!TakesVocabularyParts(scheme)) continue;
    for (const int devices : {2, 4}) {
      for (const int micro_batches : {1, 4, 9}) {
        for (const int barriers : {1, 2}) {
          SchemeParams sizes;
          sizes.devices = devices;
          sizes.micro_batches = micro_batches;
          sizes.stages =
              VocabularyStages(devices, devices * scheme.default_virtual_stages, barriers);
          SCOPED_TRACE(absl::StrCat(std::string(scheme.name), " P=", devices, " M=", micro_batches,
                                    " barriers=", barriers));
          const Schedule schedule = MakeSchedule(scheme.name, sizes).value();
          ASSERT_TRUE(CanWalkOrder(schedule));
          CheckAllLinks(schedule, &counts);
          CostTable costs = UnevenCosts(schedule);  // and of collectives
          for (size_t e = 0; e < schedule.stages.edges.size(); ++e) {
            costs.edge_latency.push_back({Nanoseconds(7 * (e % 5)), Nanoseconds(40 * (e % 3))});
          }
          Check(schedule, costs, 20, 10e9, &counts);
        }
      }
    }
  }
  EXPECT_GT(counts.devices, 200);
}

// Blocks that learn locally have no end that their backwards wait for.
TEST(WalkOrder, RefusesStagesWithoutGradients) {
  SchemeParams sizes;
  sizes.devices = 2;
  sizes.micro_batches = 4;
  EXPECT_FALSE(CanWalkOrder(MakeSchedule("local", sizes).value()));
}

// It knows no slices, no micro-batches of several sizes, no inference and no groups.
TEST(WalkOrder, RefusesWhatItDoesNotKnow) {
  const Schedule chain = ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1"});
  EXPECT_TRUE(CanWalkOrder(chain));
  Schedule s = chain;
  s.num_slices = 2;
  EXPECT_FALSE(CanWalkOrder(s));
  s = chain;
  s.micro_batches_of_stage = {2, 1};
  EXPECT_FALSE(CanWalkOrder(s));
  s = chain;
  s.forward_only = true;
  EXPECT_FALSE(CanWalkOrder(s));
  s = chain;
  s.placement.groups[0][1] = {0, 1};
  EXPECT_FALSE(CanWalkOrder(s));
  s = chain;
  s.stages = StageGraph::FromEdges(2, {{0, 1, Reads::Late(1)}});  // the gradient is late
  EXPECT_FALSE(CanWalkOrder(s));
}

// F 100 and 150, B 200, a message 20 ns, a gap 10 ns.
OrderWalk HandWalk(const std::string& last, bool overlap, bool steady_overlap, MessageCalls calls) {
  Program order;
  order.schedule = ChainOf(2, {"0F0 0F1 0B0 0B1", last});
  order.calls = calls;
  CostTable costs = CostTable::Unit(order.schedule, Nanoseconds(100));
  costs.stages[1].forward = Nanoseconds(150);
  costs.overlap = overlap;
  costs.steady_overlap = steady_overlap;
  costs.launch_gap = Nanoseconds(10);
  return WalkOrder(order, costs, [](int, int) {
    return PathCost{Nanoseconds(20), BytesPerSecond(0)};
  });
}

// Beside compute: 1F 120-270-420, 1B -620-820, 0B 640-840-1040. In its way: device 0 ends its sends
// at 120 and 240; device 1 posts the second receive when its first forward is over, 270, and has it
// at 290; its backwards end at 640 and, after a send, at 860.
TEST(WalkOrder, MessagesHoldUpTheirDevices) {
  const std::string last = "1F0 1F1 1B0 1B1";
  const OrderWalk beside = HandWalk(last, true, false, MessageCalls::kNone);
  EXPECT_EQ(beside.devices[0].end, Nanoseconds(1040));
  EXPECT_EQ(beside.devices[1].end, Nanoseconds(820));
  const OrderWalk walk = HandWalk(last, false, false, MessageCalls::kNone);
  EXPECT_EQ(walk.devices[1].last_gradient, Nanoseconds(860));
  EXPECT_EQ(walk.devices[1].end, Nanoseconds(860 + 20));
  EXPECT_EQ(walk.devices[0].end, Nanoseconds(1080));
}

// From a device's first backward to its last forward messages are beside compute: device 1 goes on
// at 470 with 1F1, which is there; its last send is in the way again, from 820 on. Without a steady
// phase it sends until 490, and posts the receive there.
TEST(WalkOrder, MessagesHoldUpTheirDevicesOutsideTheSteadyPhase) {
  const std::string last = "1F0 1B0 1F1 1B1";
  const OrderWalk steady = HandWalk(last, true, true, MessageCalls::kNone);
  EXPECT_EQ(steady.devices[1].end, Nanoseconds(840));
  EXPECT_EQ(steady.devices[0].end, Nanoseconds(1040));
  const OrderWalk never = HandWalk(last, false, false, MessageCalls::kNone);
  EXPECT_EQ(never.devices[1].end, Nanoseconds(860));
  EXPECT_EQ(never.devices[0].end, Nanoseconds(1060));
}

// A call ends 10 ns after the later of its sends and receives. Device 0 sends 0F0 before 0F1: 130;
// 1F0 begins at 130. 1B0 ends at 480, its gradient and 0F1 are there at 500: both devices go on at
// 510. 1B1 ends at 860, and the last call at 890.
TEST(WalkOrder, CallsEndWithAGap) {
  const OrderWalk walk = HandWalk("1F0 1B0 1F1 1B1", true, false, MessageCalls::kOneNeighbour);
  EXPECT_EQ(walk.devices[1].last_gradient, Nanoseconds(860));
  EXPECT_EQ(walk.devices[1].end, Nanoseconds(890));
  EXPECT_EQ(walk.devices[0].end, Nanoseconds(890 + 200));
}

// With both neighbours there is a call between two passes but for a forward and its backward, and
// one at the end. 0F0 goes before 0F1, at 130; 1F0 begins at 130, 1F1 at 310 and 1B0 at 460,
// without a call; 1B1 begins at 690, and the last call ends at 920. 0B0 begins at 680, as its
// gradient comes; 0B1 after that of 1B1 and a call, 920 to 1120.
TEST(WalkOrder, CallsWithBothNeighboursAreBetweenPasses) {
  const OrderWalk walk = HandWalk("1F0 1F1 1B0 1B1", true, false, MessageCalls::kBothNeighbours);
  EXPECT_EQ(walk.devices[1].end, Nanoseconds(920));
  EXPECT_EQ(walk.devices[0].last_gradient, Nanoseconds(1120));
  EXPECT_EQ(walk.devices[0].end, Nanoseconds(1130));
}

TEST(WalkOrder, BeginsWhenItIsTold) {
  Program order;
  order.schedule = ChainOf(1, {"0F0 0B0", "1F0 1B0"});
  const CostTable costs = CostTable::Unit(order.schedule, Nanoseconds(100));
  const auto hop = [](int, int) { return PathCost{Nanoseconds(5), BytesPerSecond(0)}; };
  EXPECT_EQ(WalkOrder(order, costs, hop).devices[0].end, Nanoseconds(610));
  EXPECT_EQ(WalkOrder(order, costs, hop, {Nanoseconds(40), Nanoseconds(0)}).devices[0].end,
            Nanoseconds(650));
  EXPECT_EQ(WalkOrder(order, costs, hop, {Nanoseconds(40), Nanoseconds(200)}).devices[1].end,
            Nanoseconds(500));
}

}  // namespace
}  // namespace pipelab
