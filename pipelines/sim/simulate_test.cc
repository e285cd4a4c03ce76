// Timelines and memory walks worked out by hand.
#include "pipelines/sim/simulate.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/test_schedules.h"
#include "pipelines/sim/replay.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

Program LowerOrDie(Schedule s) { return Lower(std::move(s), {}).value(); }

// A line a device: what takes time, as "0F0[0,100]"; waits as "wait[...]".
std::string Timeline(const Trace& trace) {
  std::string text = "\n";
  for (const DeviceTrace& device : trace.devices) {
    for (const Span& s : device.spans) {
      if (s.end_ns == s.begin_ns) continue;
      const std::string name = s.op == OpCode::kCompute ? ToString(s.action) : OpCodeName(s.op);
      absl::StrAppend(&text, name, "[", s.begin_ns, ",", s.end_ns, "] ");
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

// F 100, I 120, W 80, step 10 ns; edges of 1000 bytes.
CostTable Costs(const Schedule& s) {
  CostTable costs = CostTable::Unit(s, Nanoseconds(100));
  for (StageCost& stage : costs.stages) {
    stage.backward_input = Nanoseconds(120);
    stage.backward_weight = Nanoseconds(80);
    stage.step = Nanoseconds(10);
    stage.memory = StageMemory();
  }
  for (Bytes& b : costs.edge_bytes) b = Bytes(1000);
  return costs;
}

TEST(Simulate, TakesLatencyAndBandwidth) {
  const Program p = LowerOrDie(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}));
  CostTable costs = Costs(p.schedule);
  costs.hop_latency = Nanoseconds(5);
  costs.bandwidth = BytesPerSecond(50e9);  // 20 ns a message
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  // 0F0 ends at 100 and arrives at 125. 1B0 runs 225 to 425 and is back at 450.
  EXPECT_EQ(Timeline(trace), R"(
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
  const Program p = LowerOrDie(ChainOf(3, {"0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1F1 1F2 1B0 1B1 1B2"}));
  CostTable costs = Costs(p.schedule);
  costs.hop_latency = Nanoseconds(7);
  costs.bandwidth = BytesPerSecond(5e9);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  EXPECT_EQ(Timeline(trace), R"(
0F0[0,100] 0F1[100,200] 0F2[200,300] wait[300,1214] 0B0[1214,1414] 0B1[1414,1614] 0B2[1614,1814] step[1814,1824] 
wait[0,307] 1F0[307,407] wait[407,507] 1F1[507,607] wait[607,707] 1F2[707,807] 1B0[807,1007] 1B1[1007,1207] 1B2[1207,1407] step[1407,1417] 
)");
}

TEST(Simulate, SplitBackwardSendsBeforeTheWeightPart) {
  const Program p = LowerOrDie(ChainOf(1, {"0F0 0I0 0W0", "1F0 1I0 1W0"}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, Costs(p.schedule)));
  EXPECT_EQ(Timeline(trace), R"(
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
  const Program p = LowerOrDie(s);
  CostTable costs = Costs(p.schedule);
  costs.reduce = Nanoseconds(30);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  EXPECT_EQ(Timeline(trace), R"(
0F0[0,50] wait[50,350] 0B0[350,450] reduce_wait[450,480] step[480,490] 
0F0[0,50] wait[50,350] 0B0[350,450] reduce_wait[450,480] step[480,490] 
wait[0,50] 1F0[50,150] 1B0[150,350] step[350,360] 
)");
  EXPECT_EQ(trace.devices[0].bytes_sent, Bytes(500));
  EXPECT_EQ(trace.devices[2].bytes_sent, Bytes(1000));
  EXPECT_EQ(trace.devices[2].messages_sent, 2);
}

TEST(Simulate, AReductionWaitsForItsLastMember) {
  Schedule s = ChainOf(2, {"0F0 0B0", "0F1 0B1"});
  s.stages = StageGraph::Chain(1);
  s.placement.groups = {{{0}}, {{1}}};
  s.placement.replica_of_micro_batch = {0, 1};
  const Program p = LowerOrDie(s);
  CostTable costs;
  costs.stages.resize(1);
  costs.instruction_time = {
      {Nanoseconds(10), Nanoseconds(20), Nanoseconds(2), Nanoseconds(4), Nanoseconds(1)},
      {Nanoseconds(30), Nanoseconds(40), Nanoseconds(3), Nanoseconds(9), Nanoseconds(1)}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  EXPECT_EQ(Timeline(trace), R"(
0F0[0,10] 0B0[10,30] reduce[30,32] reduce_wait[32,82] step[82,83] 
0F1[0,30] 0B1[30,70] reduce[70,73] reduce_wait[73,82] step[82,83] 
)");
  EXPECT_EQ(trace.devices[0].spans[3].cpu_ns, 4);  // own work, without waiting
}

StageMemory Memory() {
  StageMemory m;
  m.kept = Bytes(100);
  m.kept_for_weight = Bytes(70);
  m.forward_peak = Bytes(5000);
  m.forward_drop_peak = Bytes(4000);
  m.recompute_peak = Bytes(3000);
  m.backward_peak = Bytes(900);
  m.backward_input_peak = Bytes(800);
  m.backward_weight_peak = Bytes(60);
  m.state = Bytes(12345);
  return m;
}

// Peak activation of each device with one of the peaks set to 0 or not: reads levels off the trace.
std::vector<int64_t> Peaks(const Schedule& s, const StageMemory& m) {
  const Program p = LowerOrDie(s);
  CostTable costs = Costs(p.schedule);
  for (StageCost& stage : costs.stages) stage.memory = m;
  const Trace trace = Simulate(p, costs).value();
  std::vector<int64_t> peaks;
  for (const DeviceTrace& d : trace.devices) peaks.push_back(d.peak_activation.value());
  return peaks;
}

TEST(Simulate, WalksMemory) {
  const Schedule s = ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"});
  // Device 0: 0F0 leaves 100 (its output is sent), so 0F1 begins at 100. Device 1: 1F0 begins with
  // its input of 1000; when 1F1 begins, 1B0 has freed all but the input of 1F1.
  EXPECT_EQ(Peaks(s, Memory()), (std::vector<int64_t>{5100, 6000}));
  StageMemory m = Memory();
  m.forward_peak = Bytes(0);
  // Device 0: 0B0 begins with 200 kept and a gradient of 1000. Device 1: 1B0 begins with 1100 for
  // micro-batch 0 and the input of micro-batch 1.
  EXPECT_EQ(Peaks(s, m), (std::vector<int64_t>{2100, 3000}));
  m.backward_peak = Bytes(0);
  // Levels alone: a backward's input gradient takes the input's place.
  EXPECT_EQ(Peaks(s, m), (std::vector<int64_t>{1200, 2100}));
}

// Groups of two that divide their messages: half of the bytes on the way and while they wait; then
// the whole beside the half, and half of it sent within the group.
TEST(Simulate, DividesMessagesAmongGroups) {
  const Program p = LowerOrDie(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}));
  CostTable costs = Costs(p.schedule);
  costs.bandwidth = BytesPerSecond(50e9);  // 20 ns a whole message
  costs.tensor_parallel = 2;
  costs.divided_messages = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  EXPECT_EQ(Timeline(trace), R"(
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

TEST(Simulate, WalksMemoryOfSplitBackwards) {
  const Schedule s = ChainOf(1, {"0F0 0I0 0W0", "1F0 1I0 1W0"});
  StageMemory m = Memory();
  m.forward_peak = Bytes(0);
  // Device 0: 0I0 begins at 100 + 1000; device 1: 1I0 begins at 1000 + 100.
  EXPECT_EQ(Peaks(s, m), (std::vector<int64_t>{1900, 1900}));
  m.backward_input_peak = Bytes(0);
  // After 1I0: input gradient 1000 and 70 for W; 70 more than nothing once sent.
  m.backward_weight_peak = Bytes(60000);
  EXPECT_EQ(Peaks(s, m), (std::vector<int64_t>{60070, 60070}));
}

TEST(Simulate, WalksMemoryOfRecompute) {
  const Schedule s = ChainOf(2, {"0F0 0F1 0R0 0B0 0R1 0B1", "1F0 1R0 1B0 1F1 1R1 1B1"});
  // Device 0 keeps nothing from forwards (its input is no edge); 0R0 begins before the gradient's
  // receive. Device 1: inputs of both micro-batches when 1R0 begins.
  StageMemory m = Memory();
  EXPECT_EQ(Peaks(s, m), (std::vector<int64_t>{4000, 5000}));
  m.forward_drop_peak = Bytes(0);
  EXPECT_EQ(Peaks(s, m), (std::vector<int64_t>{3000, 5000}));
  m.recompute_peak = Bytes(0);
  m.backward_peak = Bytes(0);
  EXPECT_EQ(Peaks(s, m), (std::vector<int64_t>{1100, 2100}));
}

Schedule TwoSlices(const std::vector<std::string>& lines) {
  Schedule s = ChainOf(1, lines);
  s.num_slices = 2;
  return s;
}

// F 30 and 70, I 40 and 80, W 20 and 30 ns; edges of 300 and 700 bytes.
CostTable SliceTable(const Schedule& s) {
  CostTable costs = Costs(s);
  for (int slice = 0; slice < 2; ++slice) {
    StageCost stage;
    stage.forward = Nanoseconds(slice == 0 ? 30 : 70);
    stage.backward_input = Nanoseconds(slice == 0 ? 40 : 80);
    stage.backward_weight = Nanoseconds(slice == 0 ? 20 : 30);
    SliceCosts& of_slice = costs.slices.emplace_back();
    of_slice.stages.assign(s.num_stages(), stage);
    of_slice.edge_bytes.assign(s.stages.edges.size(), Bytes(slice == 0 ? 300 : 700));
  }
  return costs;
}

TEST(Simulate, SlicesShareEquallyOrHaveTheirOwnCosts) {
  const Program p = LowerOrDie(TwoSlices({"0F0 0F0.1 0B0.1 0B0", "1F0 1F0.1 1B0.1 1B0"}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace equal, Simulate(p, Costs(p.schedule)));
  EXPECT_EQ(Timeline(equal), R"(
0F0[0,50] 0F0.1[50,100] wait[100,250] 0B0.1[250,350] 0B0[350,450] step[450,460] 
wait[0,50] 1F0[50,100] 1F0.1[100,150] 1B0.1[150,250] 1B0[250,350] step[350,360] 
)");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace own, Simulate(p, SliceTable(p.schedule)));
  EXPECT_EQ(Timeline(own), R"(
0F0[0,30] 0F0.1[30,100] wait[100,280] 0B0.1[280,390] 0B0[390,450] step[450,460] 
wait[0,30] 1F0[30,60] wait[60,100] 1F0.1[100,170] 1B0.1[170,280] 1B0[280,340] step[340,350] 
)");
  for (const Trace* trace : {&equal, &own}) {
    for (const DeviceTrace& d : trace->devices) EXPECT_EQ(d.bytes_sent, Bytes(1000));
  }
}

// Device 1: its level is 300 + 700 of inputs, 100 + 50 kept after the forwards, 40 more carried to
// the first slice once the second one's backward is through.
TEST(Simulate, WalksMemoryOfSlices) {
  const auto peak = [](const std::vector<std::string>& lines, int slice, Bytes StageMemory::*what) {
    const Program p = LowerOrDie(TwoSlices(lines));
    CostTable costs = SliceTable(p.schedule);
    for (int i = 0; i < 2; ++i) {
      StageMemory& m = costs.slices[i].stages[1].memory;
      m.kept = Bytes(i == 0 ? 100 : 50);
      m.kept_when_dropped = Bytes(i == 0 ? 60 : 0);
      m.carried = Bytes(i == 0 ? -40 : 40);
      if (i == slice) m.*what = Bytes(100000);
    }
    return Simulate(p, costs).value().devices[1].peak_activation.value() - 100000;
  };
  const std::vector<std::string> fused = {"0F0 0F0.1 0B0.1 0B0", "1F0 1F0.1 1B0.1 1B0"};
  EXPECT_EQ(peak(fused, 1, &StageMemory::forward_peak), 1000 + 100);
  EXPECT_EQ(peak(fused, 1, &StageMemory::backward_peak), 1000 + 150);
  EXPECT_EQ(peak(fused, 0, &StageMemory::backward_peak), 300 + 100 + 40);
  const std::vector<std::string> recomputed = {"0F0 0F0.1 0R0.1 0B0.1 0R0 0B0",
                                               "1F0 1F0.1 1R0.1 1B0.1 1R0 1B0"};
  EXPECT_EQ(peak(recomputed, 1, &StageMemory::forward_drop_peak), 1000 + 60);
  EXPECT_EQ(peak(recomputed, 1, &StageMemory::recompute_peak), 1000 + 60);
  EXPECT_EQ(peak(recomputed, 0, &StageMemory::recompute_peak), 300 + 60 + 40);
  EXPECT_EQ(peak(recomputed, 0, &StageMemory::backward_peak), 300 + 100 + 40);
  // The parts of a split backward: what I leaves for W stays apart from what it carries.
  const std::vector<std::string> split = {"0F0 0F0.1 0B0.1 0B0", "1F0 1F0.1 1I0.1 1I0 1W0 1W0.1"};
  EXPECT_EQ(peak(split, 0, &StageMemory::backward_input_peak), 300 + 100 + 40);
  EXPECT_EQ(peak(split, 1, &StageMemory::backward_weight_peak), 0);
}

TEST(Simulate, ChargesALocalHandOverOnce) {
  Schedule s = ChainOf(1, {"0F0 1F0 1B0 0B0", ""});
  s.placement.groups[0][1] = {0};
  StageMemory m;
  m.kept = Bytes(100);
  // After 0F0: 100 + 1000; after 1F0: 200 + 1000, the edge still once.
  EXPECT_EQ(Peaks(s, m), (std::vector<int64_t>{1200, 0}));
}

TEST(Simulate, EndsEmptyAndCountsState) {
  uint64_t seed = 0;
  for (const RandomShape& shape : Shapes()) {
    const Program p = LowerOrDie(RandomOrder(shape, ++seed));
    CostTable costs = Costs(p.schedule);
    for (StageCost& stage : costs.stages) {
      stage.memory = Memory();
      stage.memory.kept = stage.memory.kept_for_weight = Bytes(120);
    }
    for (Bytes& b : costs.edge_bytes) b = Bytes(1200);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
    // A second pass on top of the first peaks no higher: nothing is left behind.
    Program twice = p;
    for (size_t d = 0; d < twice.instructions.size(); ++d) {
      auto& list = twice.instructions[d];
      const std::vector<Instruction> once = list;
      const int32_t messages = static_cast<int32_t>(p.messages.size());
      const int32_t reductions = static_cast<int32_t>(p.reductions.size());
      for (Instruction i : once) {
        const bool reduce = i.op == OpCode::kReduce || i.op == OpCode::kReduceWait;
        if (i.arg >= 0) i.arg += reduce ? reductions : messages;
        list.push_back(i);
      }
    }
    twice.messages.insert(twice.messages.end(), p.messages.begin(), p.messages.end());
    twice.reductions.insert(twice.reductions.end(), p.reductions.begin(), p.reductions.end());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace two, Simulate(twice, costs));
    for (size_t d = 0; d < trace.devices.size(); ++d) {
      EXPECT_EQ(two.devices[d].peak_activation, trace.devices[d].peak_activation);
      EXPECT_EQ(two.devices[d].bytes_sent, trace.devices[d].bytes_sent * 2);
      int held = 0;
      for (const auto& replica : p.schedule.placement.groups) {
        for (const auto& group : replica) held += std::count(group.begin(), group.end(), int(d));
      }
      EXPECT_EQ(trace.devices[d].peak_state, Bytes(12345) * held);
    }
  }
}

TEST(Simulate, IsDeterministic) {
  const Program p = LowerOrDie(RandomOrder(Shapes().back(), 5));
  const CostTable costs = Costs(p.schedule);
  const Trace a = Simulate(p, costs).value(), b = Simulate(p, costs).value();
  EXPECT_EQ(Timeline(a), Timeline(b));
  EXPECT_GT(a.makespan, Nanoseconds(0));
}

TEST(Simulate, SpansFollowTheList) {
  const Program p = LowerOrDie(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}));
  const Trace trace = Simulate(p, Costs(p.schedule)).value();
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const std::vector<Span>& spans = trace.devices[d].spans;
    ASSERT_EQ(spans.size(), p.instructions[d].size());
    for (size_t i = 0; i < spans.size(); ++i) {
      EXPECT_EQ(spans[i].instruction, static_cast<int32_t>(i));
      EXPECT_EQ(spans[i].op, p.instructions[d][i].op);
      EXPECT_EQ(spans[i].arg, p.instructions[d][i].arg);
      EXPECT_EQ(spans[i].begin_ns, i == 0 ? 0 : spans[i - 1].end_ns);
    }
  }
}

TEST(Simulate, NamesTheBlockedInstruction) {
  Program p = LowerOrDie(ChainOf(1, {"0F0 0B0", "1F0 1B0"}));
  auto& list = p.instructions[0];
  list.erase(list.begin() + 1);  // the send of 0F0
  EXPECT_THAT(Simulate(p, Costs(p.schedule)),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("device 0, instruction 2: wait 1B0 never ends")));
}

TEST(Simulate, RefusesATableThatDoesNotFit) {
  const Program p = LowerOrDie(ChainOf(1, {"0F0 0B0", "1F0 1B0"}));
  CostTable costs = Costs(p.schedule);
  costs.stages.pop_back();
  EXPECT_THAT(Simulate(p, costs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 stages")));
  costs = Costs(p.schedule);
  costs.edge_bytes.clear();
  EXPECT_THAT(Simulate(p, costs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 edges")));
  costs = Costs(p.schedule);
  costs.instruction_time.resize(2);
  EXPECT_THAT(Simulate(p, costs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 instruction times")));
  costs = SliceTable(p.schedule);
  EXPECT_THAT(Simulate(p, costs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 slices, the schedule 1")));
  costs.slices.resize(1);
  costs.slices[0].edge_bytes.clear();
  EXPECT_THAT(Simulate(p, costs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("slice 0: the cost table has 2 stages and 0 edges")));
}

TEST(Replay, OfASimulationIsTheSimulation) {
  uint64_t seed = 0;
  for (const RandomShape& shape : Shapes()) {
    const Program p = LowerOrDie(RandomOrder(shape, ++seed));
    CostTable costs = Costs(p.schedule);
    costs.reduce = Nanoseconds(17);
    const Trace trace = Simulate(p, costs).value();
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace replayed, Replay(p, {trace}));
    EXPECT_EQ(replayed.origin, TraceOrigin::kReplayed);
    EXPECT_EQ(Timeline(replayed), Timeline(trace));
  }
}

TEST(Replay, TakesMediansAndNoWaits) {
  const Program p = LowerOrDie(ChainOf(1, {"0F0 0B0", "1F0 1B0"}));
  std::vector<Trace> traces;
  for (int64_t t : {100, 900, 300}) {
    // As measured on too few cores: everything is long on the clock; the processor time is t.
    Trace trace = Simulate(p, Costs(p.schedule)).value();
    for (DeviceTrace& d : trace.devices) {
      for (Span& s : d.spans) s.cpu_ns = s.op == OpCode::kCompute ? t : 2;
    }
    traces.push_back(trace);
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(Trace replayed, Replay(p, traces));
  // 300 a compute, 2 for each send, receive and step, 0 for a wait.
  EXPECT_EQ(Timeline(replayed), R"(
0F0[0,300] send[300,302] receive[302,304] wait[304,904] 0B0[904,1204] step[1204,1206] 
receive[0,2] wait[2,302] 1F0[302,602] 1B0[602,902] send[902,904] step[904,906] 
)");
  traces.pop_back();  // 100 and 900
  PIPELAB_ASSERT_OK_AND_ASSIGN(CostTable costs, ReplayCosts(p, traces));
  EXPECT_EQ(costs.instruction_time[0][0], Nanoseconds(500));
  EXPECT_EQ(costs.instruction_time[0][3], Nanoseconds(0));  // the wait
}

TEST(Replay, KeepsTheMemoryOfItsBase) {
  const Program p = LowerOrDie(ChainOf(1, {"0F0 0B0", "1F0 1B0"}));
  const CostTable unit = CostTable::Unit(p.schedule);
  const Trace trace = Simulate(p, unit).value();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace with, Replay(p, {trace}, unit));
  EXPECT_EQ(with.devices[0].peak_activation, Bytes(1));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace without, Replay(p, {trace}));
  EXPECT_EQ(without.devices[0].peak_activation, Bytes(0));
}

TEST(Replay, RefusesForeignTraces) {
  const Program p = LowerOrDie(ChainOf(1, {"0F0 0B0", "1F0 1B0"}));
  EXPECT_THAT(Replay(p, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at least one")));
  Trace trace = Simulate(p, Costs(p.schedule)).value();
  trace.devices[1].spans.clear();
  EXPECT_THAT(Replay(p, {trace}), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("device 1: the trace's 0 spans")));
  trace.devices.clear();
  EXPECT_THAT(Replay(p, {trace}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 devices")));
}

}  // namespace
}  // namespace pipelab
