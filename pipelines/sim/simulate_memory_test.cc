// Memory walks worked out by hand.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/hand_costs.h"
#include "tests/support/test_schedules.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

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
  const Program p = LowerPlain(s);
  CostTable costs = HandCosts(p.schedule);
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

// Device 1: its level is 300 + 700 of inputs, 100 + 50 kept after the forwards, 40 more carried to
// the first slice once the second one's backward is through.
TEST(Simulate, WalksMemoryOfSlices) {
  const auto peak = [](const std::vector<std::string>& lines, int slice, Bytes StageMemory::*what) {
    const Program p = LowerPlain(TwoSlices(lines));
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

// Two passes of a decoding: 0F1 takes the 500 bytes that 1F0 made, and nobody what 1F1 makes.
// Device 0 has them beside nothing, then an output of 2000; device 1 an input and what it makes.
TEST(Simulate, WalksMemoryOfWhatIsCarried) {
  Schedule s = ChainOf(2, {"0F0 0F1", "1F0 1F1"});
  StageGraph::Edge back{1, 0};
  back.output = Reads::List();
  s.stages = StageGraph::FromEdges(2, {{0, 1}, back});
  s.forward_only = true;
  s.carried = {-1, 0};
  const Program p = LowerPlain(s);
  CostTable costs = HandCosts(s);
  costs.of_passes = true;
  costs.slices = {{costs.stages, {Bytes(1000), Bytes(500)}},
                  {costs.stages, {Bytes(2000), Bytes(700)}}};
  const auto peaks = [&] {
    const Trace trace = Simulate(p, costs).value();
    return std::make_pair(trace.devices[0].peak_activation.value(),
                          trace.devices[1].peak_activation.value());
  };
  EXPECT_EQ(peaks(), std::make_pair(int64_t{2000}, int64_t{2000}));
  costs.slices[0].edge_bytes[1] = Bytes(1500);
  EXPECT_EQ(peaks(), std::make_pair(int64_t{2000}, int64_t{1000 + 1500}));
}

TEST(Simulate, ChargesALocalHandOverOnce) {
  Schedule s = ChainOf(1, {"0F0 1F0 1B0 0B0", ""});
  s.placement.groups[0][1] = {0};
  StageMemory m;
  m.kept = Bytes(100);
  // After 0F0: 100 + 1000; after 1F0: 200 + 1000, the edge still once.
  EXPECT_EQ(Peaks(s, m), (std::vector<int64_t>{1200, 0}));
}

// Out after 0F0, and back before 0B0: its memory is the device's until the next copy begins, and
// from the begin of its reload.
TEST(Simulate, ChargesWhatIsOffloaded) {
  const Schedule s = ChainOf(3, {"0F0 0O0 0F1 0O1 0F2 0B2 0L1 0B1 0L0 0B0"});
  StageMemory m;
  m.kept = Bytes(100);
  EXPECT_EQ(Peaks(s, m), (std::vector<int64_t>{200}));
  // 0O1 waits for the copy of 0O0, 0L1 for that of 0O1: 100 bytes in 30 ns each, passes 10 or 20.
  const Program p = LowerPlain(s);
  CostTable costs = HandCosts(s);
  costs.stages[0] = StageCost();
  costs.stages[0].forward = costs.stages[0].backward_input = costs.stages[0].backward_weight =
      Nanoseconds(10);
  costs.stages[0].memory = m;
  costs.host_bandwidth = BytesPerSecond(100 / 30e-9);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  const DeviceTrace& d = trace.devices[0];
  EXPECT_EQ(d.peak_activation, Bytes(200));
  EXPECT_EQ(d.peak_host, Bytes(200));
  EXPECT_EQ(d.host_bytes, Bytes(400));
  std::vector<std::pair<int64_t, int64_t>> copies;
  for (const HostCopy& c : d.host_copies) copies.emplace_back(c.begin_ns, c.end_ns);
  EXPECT_EQ(copies,
            (std::vector<std::pair<int64_t, int64_t>>{{10, 40}, {40, 70}, {70, 100}, {120, 150}}));
  EXPECT_EQ(trace.makespan, Nanoseconds(170));
}

TEST(Simulate, EndsEmptyAndCountsState) {
  uint64_t seed = 0;
  for (const RandomShape& shape : Shapes()) {
    const Program p = LowerPlain(RandomOrder(shape, ++seed));
    CostTable costs = HandCosts(p.schedule);
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
      const auto copies =
          static_cast<int32_t>(std::count_if(once.begin(), once.end(), [](const Instruction& i) {
            return i.op == OpCode::kOffload || i.op == OpCode::kReload;
          }));
      for (Instruction i : once) {
        const bool reduce = i.op == OpCode::kReduce || i.op == OpCode::kReduceWait;
        if (i.arg >= 0) i.arg += reduce ? reductions : IsHostTransfer(i.op) ? copies : messages;
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

}  // namespace
}  // namespace pipelab
