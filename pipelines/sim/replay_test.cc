// Simulations and measurements that are played again.
#include "pipelines/sim/replay.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/hand_costs.h"
#include "tests/support/test_schedules.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

TEST(Replay, OfASimulationIsTheSimulation) {
  uint64_t seed = 0;
  for (const RandomShape& shape : Shapes()) {
    const Program p = LowerPlain(RandomOrder(shape, ++seed));
    CostTable costs = HandCosts(p.schedule);
    costs.reduce = Nanoseconds(17);
    const Trace trace = Simulate(p, costs).value();
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace replayed, Replay(p, {trace}));
    EXPECT_EQ(replayed.origin, TraceOrigin::kReplayed);
    EXPECT_EQ(Timeline(p, replayed), Timeline(p, trace));
  }
}

TEST(Replay, TakesMediansAndNoWaits) {
  const Program p = LowerPlain(ChainOf(1, {"0F0 0B0", "1F0 1B0"}));
  std::vector<Trace> traces;
  for (int64_t t : {100, 900, 300}) {
    // As measured on too few cores: everything is long on the clock; the processor time is t.
    Trace trace = Simulate(p, HandCosts(p.schedule)).value();
    for (size_t d = 0; d < trace.devices.size(); ++d) {
      for (size_t i = 0; i < trace.devices[d].spans.size(); ++i) {
        trace.devices[d].spans[i].cpu_ns = p.instructions[d][i].op == OpCode::kCompute ? t : 2;
      }
    }
    traces.push_back(trace);
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(Trace replayed, Replay(p, traces));
  // 300 a compute, 2 for each send, receive and step, 0 for a wait.
  EXPECT_EQ(Timeline(p, replayed), R"(
0F0[0,300] send[300,302] receive[302,304] wait[304,904] 0B0[904,1204] step[1204,1206] 
receive[0,2] wait[2,302] 1F0[302,602] 1B0[602,902] send[902,904] step[904,906] 
)");
  // 10 to hand each message over.
  CostTable base;
  base.hop_latency = Nanoseconds(10);
  PIPELAB_ASSERT_OK_AND_ASSIGN(replayed, Replay(p, traces, base));
  EXPECT_EQ(Timeline(p, replayed), R"(
0F0[0,300] send[300,302] receive[302,304] wait[304,924] 0B0[924,1224] step[1224,1226] 
receive[0,2] wait[2,312] 1F0[312,612] 1B0[612,912] send[912,914] step[914,916] 
)");
  traces.pop_back();  // 100 and 900
  PIPELAB_ASSERT_OK_AND_ASSIGN(CostTable costs, ReplayCosts(p, traces));
  EXPECT_EQ(costs.instruction_time[0][0], Nanoseconds(500));
  EXPECT_EQ(costs.instruction_time[0][3], Nanoseconds(0));  // the wait
}

TEST(Replay, WakesTheMembersOfACollective) {
  uint64_t seed = 0;
  int with_collectives = 0;
  for (const RandomShape& shape : Shapes()) {
    const Program p = LowerPlain(RandomOrder(shape, ++seed));
    const Trace trace = Simulate(p, HandCosts(p.schedule)).value();
    CostTable base;
    base.hop_latency = Nanoseconds(10);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const CostTable without, ReplayCosts(p, {trace}));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const CostTable with, ReplayCosts(p, {trace}, base));
    for (size_t d = 0; d < p.instructions.size(); ++d) {
      for (size_t i = 0; i < p.instructions[d].size(); ++i) {
        const OpCode op = p.instructions[d][i].op;
        const bool ends = op == OpCode::kReduceWait || op == OpCode::kGatherWait;
        EXPECT_EQ(with.instruction_time[d][i] - without.instruction_time[d][i],
                  Nanoseconds(ends ? 10 : 0));
        with_collectives += ends;
      }
    }
  }
  EXPECT_GT(with_collectives, 0);
}

TEST(Replay, KeepsTheMemoryOfItsBase) {
  const Program p = LowerPlain(ChainOf(1, {"0F0 0B0", "1F0 1B0"}));
  const CostTable unit = CostTable::Unit(p.schedule);
  const Trace trace = Simulate(p, unit).value();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace with, Replay(p, {trace}, unit));
  EXPECT_EQ(with.devices[0].peak_activation, Bytes(1));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace without, Replay(p, {trace}));
  EXPECT_EQ(without.devices[0].peak_activation, Bytes(0));
}

TEST(Replay, RefusesForeignTraces) {
  const Program p = LowerPlain(ChainOf(1, {"0F0 0B0", "1F0 1B0"}));
  EXPECT_THAT(Replay(p, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at least one")));
  Trace trace = Simulate(p, HandCosts(p.schedule)).value();
  trace.devices[1].spans.clear();
  EXPECT_THAT(Replay(p, {trace}), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("device 1: the trace's 0 spans")));
  Trace overtaken = Simulate(p, HandCosts(p.schedule)).value();
  for (size_t i = p.instructions[1].size(); i > 0; --i) {
    overtaken.devices[1].order.push_back(static_cast<int32_t>(i - 1));
  }
  EXPECT_THAT(Replay(p, {overtaken}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("in their order")));
  trace.devices.clear();
  EXPECT_THAT(Replay(p, {trace}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 devices")));
}

}  // namespace
}  // namespace pipelab
