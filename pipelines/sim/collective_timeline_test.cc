// Times of reductions and gathers, by hand: beside compute or not, one at a time on a device, by
// bytes.
#include "pipelines/sim/collective_timeline.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/test_schedules.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// F = 100, B = 200, a step 10 ns; 1000 bytes of weights and of gradients a stage.
CostTable CostsWithWeights(const Schedule& s) {
  CostTable costs = CostTable::Unit(s, Nanoseconds(100));
  for (StageCost& stage : costs.stages) {
    stage.step = Nanoseconds(10);
    stage.memory.weights = stage.memory.gradients = Bytes(1000);
    stage.memory.state = Bytes(4000);
    stage.memory.optimizer = Bytes(2000);
  }
  return costs;
}

int64_t LoweredMakespan(const Schedule& s, const LoweringOptions& options, const CostTable& costs) {
  return Simulate(Lower(s, options).value(), costs).value().makespan.value();
}

// Two directions over two devices: stage 1's gradients are complete at 400, stage 0's at 600.
Schedule TwoWays() {
  Schedule s = ChainOf(2, {"0F0 0B0", "1F0 1B0"});
  s.placement.groups = {{{0}, {1}}, {{1}, {0}}};
  s.placement.replica_of_micro_batch = {0, 1};
  s.order = {Actions("0F0 1F1 1B1 0B0"), Actions("0F1 1F0 1B0 0B1")};
  return s;
}

TEST(CollectiveTimeline, EagerReductionsRunBesideCompute) {
  CostTable costs = CostsWithWeights(TwoWays());
  costs.reduce = Nanoseconds(50);
  LoweringOptions eager, at_end;
  eager.eager_reductions = true;
  EXPECT_EQ(LoweredMakespan(TwoWays(), eager, costs), 600 + 50 + 20);
  EXPECT_EQ(LoweredMakespan(TwoWays(), at_end, costs), 600 + 50 + 50 + 20);  // one after the other
  costs.overlap = false;                                                     // of messages alone
  EXPECT_EQ(LoweredMakespan(TwoWays(), eager, costs), 600 + 50 + 20);
  costs.overlap_collectives = false;
  EXPECT_EQ(LoweredMakespan(TwoWays(), eager, costs), 400 + 50 + 200 + 50 + 20);
  EXPECT_EQ(LoweredMakespan(TwoWays(), at_end, costs), 600 + 50 + 50 + 20);
}

// A ring and the gradients of the other direction are on both links at one time.
TEST(CollectiveTimeline, SharesLinksWithMessages) {
  CostTable costs = CostsWithWeights(TwoWays());
  costs.edge_bytes = {Bytes(100)};
  costs.bandwidth = BytesPerSecond(1e9);  // a byte a nanosecond
  LoweringOptions eager;
  eager.eager_reductions = true;
  // Stage 1's B ends at 500. Its gradients (100 bytes) and its sum (1000 a device) halve the links
  // until 700; the sum has the other 900 bytes for itself. 0B ends at 900, stage 0's sum is next.
  EXPECT_EQ(LoweredMakespan(TwoWays(), eager, costs), 500 + 200 + 900 + 1000 + 20);
  const Program program = Lower(TwoWays(), eager).value();
  const Trace trace = Simulate(program, costs).value();
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    for (const ExecutedInstruction& span : SpansOf(program, trace, d)) {
      if (span.op == OpCode::kCompute && ToString(span.action)[1] == 'B') {
        EXPECT_EQ(span.begin_ns, span.action.stage == 1 ? 300 : 700);
      }
    }
  }
  // Bytes move once the latency is over: the message is alone for 50 ns.
  costs.reduce = Nanoseconds(50);
  EXPECT_EQ(LoweredMakespan(TwoWays(), eager, costs), 550 + 100 + 950 + 1050 + 20);
  // The same with the links written down; and with a card for sums alone.
  costs.network = PrivateLinks(2, {"", Nanoseconds(0), costs.bandwidth});
  EXPECT_EQ(LoweredMakespan(TwoWays(), eager, costs), 550 + 100 + 950 + 1050 + 20);
  costs.network.links.push_back({"card", Nanoseconds(0), BytesPerSecond(4e9)});
  RingRoute& ring = costs.network.rings[{0, 1}];
  ring.ranks = 4;  // 1500 bytes each; 8 of them share the card
  ring.uses = {{2, 8.0}};
  EXPECT_EQ(LoweredMakespan(TwoWays(), eager, costs), 500 + 2 * (50 + 3000) + 20);
  // Messages through the same card: 100 bytes and the sum's rise together at 4 / (8 + 1 + 1).
  costs.network.RouteOf(0, 1).uses = costs.network.RouteOf(1, 0).uses = {2};
  costs.edge_bytes = {Bytes(400)};
  costs.reduce = Nanoseconds(0);
  // Forwards: 400 bytes at 2 a nanosecond each. 1B ends at 600; the messages at 1600, with 1100
  // bytes of the sum left. 0B ends at 1800.
  EXPECT_EQ(LoweredMakespan(TwoWays(), eager, costs), 1600 + 2200 + 3000 + 20);
}

TEST(CollectiveTimeline, WorkIsDoneAtTheWait) {
  CostTable costs = CostsWithWeights(TwoWays());
  costs.reduce = Nanoseconds(50);
  costs.collectives_at_wait = true;
  LoweringOptions eager, at_end;
  eager.eager_reductions = true;
  for (bool overlap : {true, false}) {
    costs.overlap_collectives = overlap;
    EXPECT_EQ(LoweredMakespan(TwoWays(), eager, costs), 600 + 50 + 50 + 20);
    EXPECT_EQ(LoweredMakespan(TwoWays(), at_end, costs), 600 + 50 + 50 + 20);
  }
  const Program program = Lower(TwoWays(), eager).value();
  const Trace trace = Simulate(program, costs).value();
  for (const ExecutedInstruction& span : SpansOf(program, trace, 0)) {
    const int64_t expected = span.op == OpCode::kReduceWait ? 50 : 0;
    if (IsCollective(span.op)) {
      EXPECT_EQ(span.end_ns - span.begin_ns, expected);
    }
  }
  EXPECT_EQ(trace.devices[0].collective_bytes, Bytes(2000));
}

// Every device waits for all gradients and a ring of 4 bytes a value; the steps follow.
TEST(CollectiveTimeline, TheNormIsARingOverAllDevices) {
  const Schedule s = ChainOf(1, {"0F0 0B0", "1F0 1B0"});
  CostTable costs = CostsWithWeights(s);
  LoweringOptions options;
  const int64_t without = LoweredMakespan(s, options, costs);
  EXPECT_EQ(without, 600 + 10);
  options.norm_values = 25;  // 100 bytes
  EXPECT_EQ(LoweredMakespan(s, options, costs), without);
  costs.reduce = Nanoseconds(50);
  costs.hop_latency = Nanoseconds(5);
  EXPECT_EQ(LoweredMakespan(s, options, costs), 600 + 2 * 5 + 50 + 2 * 5 + 10);
  costs.bandwidth = BytesPerSecond(1e9);  // a byte a nanosecond; the edge has none
  EXPECT_EQ(LoweredMakespan(s, options, costs), 600 + 2 * 5 + 50 + 2 * 5 + 2 * 50 + 10);
  const Program program = Lower(s, options).value();
  const Trace trace = Simulate(program, costs).value();
  for (const std::vector<Instruction>& list : program.instructions) {
    EXPECT_EQ(list.back().op, OpCode::kStep);
  }
  for (const DeviceTrace& device : trace.devices) {
    EXPECT_EQ(device.collective_bytes, Bytes(100));  // 2 (d - 1) / d of it
    EXPECT_EQ(device.messages_sent, 1);
    EXPECT_EQ(device.spans.back().begin_ns, 600 + 2 * 5 + 50 + 2 * 5 + 2 * 50);
  }
}

// One device sends nothing; what it holds for the norm counts where nothing else is higher.
TEST(CollectiveTimeline, TheNormOfOneDeviceTakesNoTime) {
  const Schedule s = ChainOf(1, {"0F0 0B0"});
  CostTable costs = CostsWithWeights(s);
  costs.hop_latency = Nanoseconds(5);
  LoweringOptions options;
  options.norm_values = 25;
  EXPECT_EQ(LoweredMakespan(s, options, costs), 300 + 10);
  const Trace trace = Simulate(Lower(s, options).value(), costs).value();
  EXPECT_EQ(trace.devices[0].collective_bytes, Bytes(0));
  EXPECT_EQ(trace.devices[0].peak_activation, Bytes(100));
}

TEST(CollectiveTimeline, RingsTakeTheirBytes) {
  Schedule s = ChainOf(1, {"0F0 0B0", "0F0 0B0"});
  s.stages = StageGraph::Chain(1);
  s.placement.groups = {{{0, 1}}};
  CostTable costs = CostsWithWeights(s);
  costs.hop_latency = Nanoseconds(5);
  costs.bandwidth = BytesPerSecond(10e9);  // 10 bytes a nanosecond
  LoweringOptions options;
  // Half of each action; an all-reduce is two steps of 5 ns and twice half of the bytes.
  EXPECT_EQ(LoweredMakespan(s, options, costs), 150 + 10 + 100 + 10);
  // Half of it, half of the step, and the gather.
  options.sharding = Sharding::kOptimizer;
  EXPECT_EQ(LoweredMakespan(s, options, costs), 150 + 55 + 5 + 55);
  const Program p = Lower(s, options).value();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  EXPECT_EQ(trace.devices[1].collective_bytes, Bytes(500 + 500));
  EXPECT_EQ(trace.devices[1].peak_state, Bytes(2 * 1000 + 2 * 500));
}

// One pipeline device, two stages, a group of two: F0 F1 B1 B0 of 50, 50, 100, 100 ns.
TEST(CollectiveTimeline, GathersAheadHideBehindCompute) {
  const Schedule s =
      MakeSchedule("breadth_first",
                   {.devices = 1, .micro_batches = 1, .virtual_stages = 2, .data_parallel = 2})
          .value();
  CostTable costs = CostsWithWeights(s);
  costs.hop_latency = Nanoseconds(5);
  costs.bandwidth = BytesPerSecond(10e9);
  LoweringOptions options;
  options.sharding = Sharding::kFully;
  // Stage 0, stage 1 (kept for its backward), stage 0 again; two reduce-scatters; 55 ns each.
  EXPECT_EQ(LoweredMakespan(s, options, costs), 5 * 55 + 300 + 10);
  const auto state = [&] {
    return Simulate(Lower(s, options).value(), costs).value().devices[0].peak_state;
  };
  // Half of both stages; one stage's weights, and its gradients.
  EXPECT_EQ(state(), Bytes(2 * 2000 + 1000 + 1000));
  // F0 [55, 105] while stage 1 comes [55, 110]; F1 [110, 160] while stage 0 comes [110, 165]; B1
  // [160, 260]; B0 [260, 360] beside stage 1's sum; stage 0's sum [360, 415].
  options.overlap = true;
  EXPECT_EQ(LoweredMakespan(s, options, costs), 415 + 10);
  EXPECT_EQ(state(), Bytes(2 * 2000 + 3 * 1000));
  costs.collectives_at_wait = true;  // nothing is begun ahead
  EXPECT_EQ(LoweredMakespan(s, options, costs), 5 * 55 + 300 + 10);
}

}  // namespace
}  // namespace pipelab
