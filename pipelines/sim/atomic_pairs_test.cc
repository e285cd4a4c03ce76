#include "pipelines/ir/atomic_pairs.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/test_schedules.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

LoweringOptions NoStep() {
  LoweringOptions options;
  options.step = false;
  return options;
}

// The compute actions with their times, "0F0[0,1] ...", one line for each device.
std::string Times(const Program& program, const CostTable& costs) {
  const auto trace = Simulate(program, costs);
  if (!trace.ok()) return std::string(trace.status().message());
  std::string text;
  for (size_t d = 0; d < trace->devices.size(); ++d) {
    for (const ExecutedInstruction& s : SpansOf(program, *trace, d)) {
      if (s.op != OpCode::kCompute) continue;
      text += ToString(s.action) + "[" + std::to_string(s.begin_ns) + "," +
              std::to_string(s.end_ns) + "] ";
    }
    text += "\n";
  }
  return text;
}

// With F = I = W = 1.
std::string Times(const Program& program) {
  return Times(program, CostTable::Unit(program.schedule, /*unit=*/Nanoseconds(1)));
}

// Device 0's second forward waits with the backward that follows it, and device 1 gets 0F1 late.
TEST(AtomicPairs, StartTogetherAndSendAtTheEnd) {
  const Schedule s = ChainOf(3, {"0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"});
  PIPELAB_ASSERT_OK_AND_ASSIGN(Program program, Lower(s, NoStep()));
  EXPECT_EQ(Times(program),
            "0F0[0,1] 0F1[1,2] 0F2[2,3] 0B0[4,6] 0B1[7,9] 0B2[10,12] \n"
            "1F0[1,2] 1B0[2,4] 1F1[4,5] 1B1[5,7] 1F2[7,8] 1B2[8,10] \n");
  PairForwardBackward(&program);
  EXPECT_EQ(Times(program),
            "0F0[0,1] 0F1[1,2] 0F2[4,5] 0B0[5,7] 0B1[7,9] 0B2[10,12] \n"
            "1F0[1,2] 1B0[2,4] 1F1[4,5] 1B1[5,7] 1F2[7,8] 1B2[8,10] \n");
}

TEST(AtomicPairs, TheSameMicroBatchAndPartsDoNotPair) {
  const Schedule s = ChainOf(2, {"0F0 0B0 0F1 0B1"});
  EXPECT_EQ(FindPairs(s)[0], (std::vector<char>{0, 0, 0, 0}));
  const Schedule split = ChainOf(2, {"0F0 0F1 0I0 0W0 0B1"});
  EXPECT_EQ(FindPairs(split)[0], (std::vector<char>{0, 0, 0, 0, 0}));
  const Schedule fused = ChainOf(2, {"0F0 0F1 0B0 0B1"});
  EXPECT_EQ(FindPairs(fused)[0], (std::vector<char>{0, 1, 0, 0}));
}

// Copies to the host and back stand between passes, and passes behind them still pair.
TEST(AtomicPairs, CopiesToTheHostDoNotEndThem) {
  const std::string last = "1F1 1B1 1F0 1B0";
  const auto paired = [&](const std::string& first) {
    Program program = *Lower(ChainOf(2, {first, last}), NoStep());
    PairForwardBackward(&program);
    return Times(program);
  };
  EXPECT_EQ(paired("0F1 0O1 0L1 0F0 0B1 0O0 0L0 0B0"), paired("0F1 0F0 0B1 0B0"));
}

// GPipe: 0B0 needs 1B0, which comes after 1F1, which needs 0F1.
TEST(AtomicPairs, WhatCannotRunTogetherFallsApart) {
  const Schedule s = ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1"});
  EXPECT_EQ(FindPairs(s)[0], (std::vector<char>{0, 0, 0, 0}));
  EXPECT_EQ(FindPairs(s)[1], (std::vector<char>{0, 1, 0, 0}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(Program program, Lower(s, NoStep()));
  PairForwardBackward(&program);
  EXPECT_EQ(Times(program),
            "0F0[0,1] 0F1[1,2] 0B0[5,7] 0B1[7,9] \n"
            "1F0[1,2] 1F1[2,3] 1B0[3,5] 1B1[5,7] \n");
}

// 0F1 and 0B0 are one pass on device 0, in which each takes 30 less; device 1 has none.
TEST(AtomicPairs, MergedPassesSaveTime) {
  Schedule s = ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"});
  CostTable costs = CostTable::Unit(s, Nanoseconds(100));
  for (StageCost& stage : costs.stages) stage.merged_saving = Nanoseconds(30);
  PIPELAB_ASSERT_OK_AND_ASSIGN(Program program, Lower(s, NoStep()));
  EXPECT_EQ(Times(program, costs),
            "0F0[0,100] 0F1[100,200] 0B0[400,600] 0B1[700,900] \n"
            "1F0[100,200] 1B0[200,400] 1F1[400,500] 1B1[500,700] \n");
  s.merges_passes = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(program, Lower(s, NoStep()));
  EXPECT_EQ(Times(program, costs),
            "0F0[0,100] 0F1[100,170] 0B0[400,570] 0B1[700,900] \n"
            "1F0[100,200] 1B0[200,400] 1F1[400,500] 1B1[500,700] \n");
}

// What is wrong with the weights that passes find; empty: nothing.
std::string FaultOfWeights(const Program& program) {
  for (const std::vector<Instruction>& list : program.instructions) {
    std::set<std::pair<int, int>> there, coming;
    for (const Instruction& i : list) {
      const std::pair<int, int> stage = {i.replica, i.action.stage};
      const std::string text = absl::StrCat(OpCodeName(i.op), " ", ToString(i.action));
      if (i.op == OpCode::kCompute && there.count(stage) == 0) return text + ": no weights";
      if (i.op == OpCode::kGather && there.count(stage) > 0) return text + ": they are there";
      if (i.op == OpCode::kGather) coming.insert(stage);
      if (i.op == OpCode::kGatherWait && coming.erase(stage) > 0) there.insert(stage);
      if (i.op == OpCode::kRelease) there.erase(stage);
    }
  }
  return "";
}

// A forward that is the last of a run has its weights until the pair is over.
TEST(AtomicPairs, WeightsStayForThem) {
  int64_t moved = 0;
  for (const Scheme& scheme : Catalog()) {
    for (const bool overlap : {false, true}) {
      SchemeParams params;
      params.devices = 2;
      params.micro_batches = 8;
      params.data_parallel = 2;
      absl::StatusOr<Schedule> schedule = MakeSchedule(scheme.name, params);
      if (!schedule.ok()) continue;
      LoweringOptions options;
      options.sharding = Sharding::kFully;
      options.overlap = overlap;
      absl::StatusOr<Program> program = Lower(*std::move(schedule), options);
      if (!program.ok() || program->schedule.weights_travel) continue;
      ASSERT_EQ(FaultOfWeights(*program), "") << scheme.name << " " << overlap;
      const Program before = *program;
      PairForwardBackward(&*program);
      EXPECT_EQ(FaultOfWeights(*program), "") << scheme.name << " " << overlap;
      for (size_t d = 0; d < before.instructions.size(); ++d) {
        for (size_t i = 0; i < before.instructions[d].size(); ++i) {
          moved += before.instructions[d][i].op == OpCode::kRelease &&
                   program->instructions[d][i].op != OpCode::kRelease;
        }
      }
    }
  }
  EXPECT_GT(moved, 20);
}

// Nothing is lost or doubled, and every schedule still runs to its end.
TEST(AtomicPairs, AnyScheduleStillRuns) {
  uint64_t seed = 0;
  int pairs = 0;
  for (const RandomShape& shape : Shapes()) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(Program program,
                                   Lower(RandomOrder(shape, ++seed), LoweringOptions()));
      const Program before = program;
      for (const auto& list : FindPairs(program.schedule)) {
        for (char begins : list) pairs += begins;
      }
      PairForwardBackward(&program);
      for (size_t d = 0; d < program.instructions.size(); ++d) {
        ASSERT_EQ(program.instructions[d].size(), before.instructions[d].size());
      }
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace,
                                   Simulate(program, CostTable::Unit(program.schedule)));
      ASSERT_GT(trace.makespan, Nanoseconds(0));
    }
  }
  EXPECT_GT(pairs, 100);
}

}  // namespace
}  // namespace pipelab
