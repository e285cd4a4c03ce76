// Timelines worked out by hand.
#include "pipelines/sim/simulate.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/hand_costs.h"
#include "tests/support/test_schedules.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

TEST(Simulate, TakesLatencyAndBandwidth) {
  const Program p = LowerPlain(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}));
  CostTable costs = HandCosts(p.schedule);
  costs.hop_latency = Nanoseconds(5);
  costs.bandwidth = BytesPerSecond(50e9);  // 20 ns a message
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  // 0F0 ends at 100 and arrives at 125. 1B0 runs 225 to 425 and is back at 450.
  EXPECT_EQ(Timeline(p, trace), R"(
0F0[0,100] 0F1[100,200] wait[200,450] 0B0[450,650] wait[650,750] 0B1[750,950] step[950,960] 
wait[0,125] 1F0[125,225] 1B0[225,425] 1F1[425,525] 1B1[525,725] step[725,735] 
)");
  EXPECT_EQ(trace.makespan, Nanoseconds(960));
  EXPECT_EQ(trace.origin, TraceOrigin::kSimulated);
  for (const DeviceTrace& d : trace.devices) {
    EXPECT_EQ(d.bytes_sent, Bytes(2000));
    EXPECT_EQ(d.messages_sent, 2);
  }
}

TEST(Simulate, MessagesOfAPairFollowOneAnother) {
  // Transfers of 200 ns are the bottleneck: they leave at 100, 300, 500 and arrive 200 + 7 later.
  const Program p = LowerPlain(ChainOf(3, {"0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1F1 1F2 1B0 1B1 1B2"}));
  CostTable costs = HandCosts(p.schedule);
  costs.hop_latency = Nanoseconds(7);
  costs.bandwidth = BytesPerSecond(5e9);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  EXPECT_EQ(Timeline(p, trace), R"(
0F0[0,100] 0F1[100,200] 0F2[200,300] wait[300,1214] 0B0[1214,1414] 0B1[1414,1614] 0B2[1614,1814] step[1814,1824] 
wait[0,307] 1F0[307,407] wait[407,507] 1F1[507,607] wait[607,707] 1F2[707,807] 1B0[807,1007] 1B1[1007,1207] 1B2[1207,1407] step[1407,1417] 
)");
}

TEST(Simulate, SplitBackwardSendsBeforeTheWeightPart) {
  const Program p = LowerPlain(ChainOf(1, {"0F0 0I0 0W0", "1F0 1I0 1W0"}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, HandCosts(p.schedule)));
  EXPECT_EQ(Timeline(p, trace), R"(
0F0[0,100] wait[100,320] 0I0[320,440] 0W0[440,520] step[520,530] 
wait[0,100] 1F0[100,200] 1I0[200,320] 1W0[320,400] step[400,410] 
)");
}

TEST(Simulate, GroupsShareTimeAndReduceTogether) {
  // Stage 0 on two devices: half the time each, a reduction of 30 ns after the later one, then the
  // step.
  Schedule s = ChainOf(1, {"0F0 0B0", "0F0 0B0", "1F0 1B0"});
  s.stages = StageGraph::Chain(2);
  s.placement.groups = {{{0, 1}, {2}}};
  const Program p = LowerPlain(s);
  CostTable costs = HandCosts(p.schedule);
  costs.reduce = Nanoseconds(30);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  EXPECT_EQ(Timeline(p, trace), R"(
0F0[0,50] wait[50,350] 0B0[350,450] reduce_wait[450,480] step[480,490] 
0F0[0,50] wait[50,350] 0B0[350,450] reduce_wait[450,480] step[480,490] 
wait[0,50] 1F0[50,150] 1B0[150,350] step[350,360] 
)");
  EXPECT_EQ(trace.devices[0].bytes_sent, Bytes(500));
  EXPECT_EQ(trace.devices[2].bytes_sent, Bytes(1000));
  EXPECT_EQ(trace.devices[2].messages_sent, 2);
}

// Each slice of a pass sums its group's statistics: over a ring of two an all-reduce of 40 bytes is
// 40 ns beside F = 25 and 10 bytes with an all-gather of 20 are 20 ns beside B = 50.
TEST(Simulate, GroupsSumStatisticsWithinPasses) {
  Schedule s = ChainOf(1, {"0F0 0F0.1 0B0.1 0B0", "0F0 0F0.1 0B0.1 0B0"});
  s.stages = StageGraph::Chain(1);
  s.placement.groups = {{{0, 1}}};
  s.num_slices = 2;
  const Program p = LowerPlain(s);
  CostTable costs = HandCosts(p.schedule);
  costs.bandwidth = BytesPerSecond(1e9);  // a byte a nanosecond
  costs.stages[0].statistics.forward = {{Collective::kAllReduce, Bytes(40)}};
  costs.stages[0].statistics.backward_input = {{Collective::kAllReduce, Bytes(10)},
                                               {Collective::kAllGather, Bytes(20)}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  EXPECT_EQ(Timeline(p, trace), R"(
0F0[0,65] 0F0.1[65,130] 0B0.1[130,200] 0B0[200,270] step[270,280] 
0F0[0,65] 0F0.1[65,130] 0B0.1[130,200] 0B0[200,270] step[270,280] 
)");
  for (const DeviceTrace& d : trace.devices) EXPECT_EQ(d.collective_bytes, Bytes(2 * (40 + 20)));
  // Inference has running statistics.
  s.order = {Actions("0F0"), Actions("0F0")};
  s.num_slices = 1;
  s.forward_only = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace inference, Simulate(LowerPlain(s), costs));
  EXPECT_EQ(inference.makespan, Nanoseconds(50));
  EXPECT_EQ(inference.devices[0].collective_bytes, Bytes(0));
}

TEST(Simulate, AReductionWaitsForItsLastMember) {
  Schedule s = ChainOf(2, {"0F0 0B0", "0F1 0B1"});
  s.stages = StageGraph::Chain(1);
  s.placement.groups = {{{0}}, {{1}}};
  s.placement.replica_of_micro_batch = {0, 1};
  const Program p = LowerPlain(s);
  CostTable costs;
  costs.stages.resize(1);
  costs.instruction_time = {
      {Nanoseconds(10), Nanoseconds(20), Nanoseconds(2), Nanoseconds(4), Nanoseconds(1)},
      {Nanoseconds(30), Nanoseconds(40), Nanoseconds(3), Nanoseconds(9), Nanoseconds(1)}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  EXPECT_EQ(Timeline(p, trace), R"(
0F0[0,10] 0B0[10,30] reduce[30,32] reduce_wait[32,82] step[82,83] 
0F1[0,30] 0B1[30,70] reduce[70,73] reduce_wait[73,82] step[82,83] 
)");
  EXPECT_EQ(trace.devices[0].spans[3].cpu_ns, 4);  // own work, without waiting
}

// Groups of two that divide their messages: half of the bytes on the way and while they wait; then
// the whole beside the half, and half of it sent within the group.
TEST(Simulate, DividesMessagesAmongGroups) {
  const Program p = LowerPlain(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}));
  CostTable costs = HandCosts(p.schedule);
  costs.bandwidth = BytesPerSecond(50e9);  // 20 ns a whole message
  costs.tensor_parallel = 2;
  costs.divided_messages = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  EXPECT_EQ(Timeline(p, trace), R"(
0F0[0,100] 0F1[100,200] wait[200,420] 0B0[420,620] wait[620,720] 0B1[720,920] step[920,930] 
wait[0,110] 1F0[110,210] 1B0[210,410] 1F1[410,510] 1B1[510,710] step[710,720] 
)");
  for (const DeviceTrace& d : trace.devices) {
    EXPECT_EQ(d.bytes_sent, Bytes(1000));
    EXPECT_EQ(d.messages_sent, 2);
    EXPECT_EQ(d.tensor_bytes, Bytes(1000));
  }
  // A gradient's half, and the whole while it is gathered. At device 1 the input of micro-batch 0
  // is kept as well, or its gradient is there, and half of micro-batch 1's waits.
  EXPECT_EQ(trace.devices[0].peak_activation, Bytes(1500));
  EXPECT_EQ(trace.devices[1].peak_activation, Bytes(1500));
  costs.edge_bytes[0] = Bytes(1002);  // no two halves of whole floats
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace whole, Simulate(p, costs));
  EXPECT_EQ(whole.devices[0].bytes_sent, Bytes(2004));
  EXPECT_EQ(whole.devices[0].tensor_bytes, Bytes(0));
}

TEST(Simulate, SlicesShareEquallyOrHaveTheirOwnCosts) {
  const Program p = LowerPlain(TwoSlices({"0F0 0F0.1 0B0.1 0B0", "1F0 1F0.1 1B0.1 1B0"}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace equal, Simulate(p, HandCosts(p.schedule)));
  EXPECT_EQ(Timeline(p, equal), R"(
0F0[0,50] 0F0.1[50,100] wait[100,250] 0B0.1[250,350] 0B0[350,450] step[450,460] 
wait[0,50] 1F0[50,100] 1F0.1[100,150] 1B0.1[150,250] 1B0[250,350] step[350,360] 
)");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace own, Simulate(p, SliceTable(p.schedule)));
  EXPECT_EQ(Timeline(p, own), R"(
0F0[0,30] 0F0.1[30,100] wait[100,280] 0B0.1[280,390] 0B0[390,450] step[450,460] 
wait[0,30] 1F0[30,60] wait[60,100] 1F0.1[100,170] 1B0.1[170,280] 1B0[280,340] step[340,350] 
)");
  for (const Trace* trace : {&equal, &own}) {
    for (const DeviceTrace& d : trace->devices) EXPECT_EQ(d.bytes_sent, Bytes(1000));
  }
}

// Forwards of the first stage wait for their samples: micro-batch 1's are there at 170.
TEST(Simulate, ForwardsWaitForTheirSamples) {
  const Program p = LowerPlain(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}));
  CostTable costs = HandCosts(p.schedule);
  costs.releases = {Nanoseconds(30), Nanoseconds(170)};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  EXPECT_EQ(Timeline(p, trace), R"(
0F0[30,130] 0F1[170,270] wait[270,430] 0B0[430,630] wait[630,730] 0B1[730,930] step[930,940] 
wait[0,130] 1F0[130,230] 1B0[230,430] 1F1[430,530] 1B1[530,730] step[730,740] 
)");
  const auto error = [&](std::vector<Nanoseconds> releases) {
    costs.releases = std::move(releases);
    return std::string(Simulate(p, costs).status().message());
  };
  constexpr int64_t kMost = int64_t{1} << 61;
  EXPECT_EQ(error({Nanoseconds(0), Nanoseconds(kMost)}), "");
  EXPECT_THAT(error({Nanoseconds(0)}), HasSubstr("arrivals of 1 micro-batches"));
  EXPECT_THAT(error({Nanoseconds(0), Nanoseconds(-1)}), HasSubstr("arrives at -1 ns"));
  EXPECT_THAT(error({Nanoseconds(kMost + 1), Nanoseconds(0)}), HasSubstr("from 0 to 2^61"));
}

// As many smallest micro-batches as the stage's has must be there.
TEST(Simulate, LargerMicroBatchesWaitForAllTheirSamples) {
  Schedule s = ChainOf(4, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"});
  s.stages = StageGraph::FromEdges(2, {});
  s.micro_batches_of_stage = {2, 4};
  const Program p = LowerPlain(s);
  CostTable costs = HandCosts(p.schedule);
  costs.releases = {Nanoseconds(10), Nanoseconds(20), Nanoseconds(30), Nanoseconds(400)};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  std::vector<int64_t> begins;
  for (const ExecutedInstruction& span : SpansOf(p, trace, 0)) {
    if (span.action.kind == ActionKind::kForward) begins.push_back(span.begin_ns);
  }
  EXPECT_EQ(begins, (std::vector<int64_t>{20, 400}));
}

TEST(Simulate, IsDeterministic) {
  const Program p = LowerPlain(RandomOrder(Shapes().back(), 5));
  const CostTable costs = HandCosts(p.schedule);
  const Trace a = Simulate(p, costs).value(), b = Simulate(p, costs).value();
  EXPECT_EQ(Timeline(p, a), Timeline(p, b));
  EXPECT_GT(a.makespan, Nanoseconds(0));
}

TEST(Simulate, SpansFollowTheList) {
  const Program p = LowerPlain(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}));
  const Trace trace = Simulate(p, HandCosts(p.schedule)).value();
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const std::vector<Span>& spans = trace.devices[d].spans;
    ASSERT_EQ(spans.size(), p.instructions[d].size());
    for (size_t i = 0; i < spans.size(); ++i) {
      EXPECT_EQ(spans[i].begin_ns, i == 0 ? 0 : spans[i - 1].end_ns);
    }
  }
}

TEST(Simulate, NamesTheBlockedInstruction) {
  Program p = LowerPlain(ChainOf(1, {"0F0 0B0", "1F0 1B0"}));
  auto& list = p.instructions[0];
  list.erase(list.begin() + 1);  // the send of 0F0
  EXPECT_THAT(Simulate(p, HandCosts(p.schedule)),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("device 0, instruction 2: wait 1B0 never ends")));
}

TEST(Simulate, RefusesATableThatDoesNotFit) {
  const Program p = LowerPlain(ChainOf(1, {"0F0 0B0", "1F0 1B0"}));
  CostTable costs = HandCosts(p.schedule);
  costs.stages.pop_back();
  EXPECT_THAT(Simulate(p, costs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 stages")));
  costs = HandCosts(p.schedule);
  costs.edge_bytes.clear();
  EXPECT_THAT(Simulate(p, costs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 edges")));
  costs = HandCosts(p.schedule);
  costs.edge_latency.resize(3);
  EXPECT_THAT(Simulate(p, costs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("latencies of 3 edges")));
  costs.edge_latency.assign(costs.edge_bytes.size(), {Nanoseconds(0), Nanoseconds(-1)});
  EXPECT_THAT(Simulate(p, costs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("negative latency")));
  costs = HandCosts(p.schedule);
  costs.instruction_time.resize(2);
  EXPECT_THAT(Simulate(p, costs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 instruction times")));
  costs.instruction_time.clear();
  costs.hop_latency = Nanoseconds(-1);
  EXPECT_THAT(Simulate(p, costs), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("a negative bandwidth or latency")));
  costs.hop_latency = Nanoseconds(0);
  for (BytesPerSecond* bandwidth : {&costs.bandwidth, &costs.host_bandwidth}) {
    *bandwidth = BytesPerSecond(-1);
    EXPECT_THAT(Simulate(p, costs), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("a negative bandwidth or latency")));
    *bandwidth = BytesPerSecond(0);
  }
  costs = SliceTable(p.schedule);
  EXPECT_THAT(Simulate(p, costs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 slices, the schedule 1")));
  costs.slices.resize(1);
  costs.slices[0].edge_bytes.clear();
  EXPECT_THAT(Simulate(p, costs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("slice 0: the cost table has 2 stages and 0 edges")));
}

}  // namespace
}  // namespace pipelab
