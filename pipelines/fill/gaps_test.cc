#include "pipelines/fill/gaps.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/analysis/analysis.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/memory_levels.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Bytes kMemory(100000);

struct SimulatedRun {
  Program program;
  CostTable costs;
  Trace trace;
};

absl::StatusOr<SimulatedRun> Simulated(const Schedule& schedule,
                                       Sharding sharding = Sharding::kReplicated, int64_t hop = 0) {
  SimulatedRun run;
  LoweringOptions options;
  options.sharding = sharding;
  PIPELAB_ASSIGN_OR_RETURN(run.program, Lower(schedule, options));
  run.costs = CostTable::Unit(run.program.schedule, Nanoseconds(12));
  run.costs.hop_latency = Nanoseconds(hop);
  run.costs.reduce = Nanoseconds(hop);
  for (StageCost& stage : run.costs.stages) {
    stage.step = Nanoseconds(hop);
    stage.memory.state = Bytes(2000);
    stage.memory.weights = stage.memory.gradients = Bytes(400);
    stage.memory.optimizer = Bytes(800);
    stage.memory.forward_peak = stage.memory.backward_peak = Bytes(30);
  }
  for (Bytes& b : run.costs.edge_bytes) b = Bytes(10);
  PIPELAB_ASSIGN_OR_RETURN(run.trace, Simulate(run.program, run.costs));
  return run;
}

std::vector<std::string> Texts(const DeviceGaps& device) {
  std::vector<std::string> texts;
  for (const Gap& g : device.gaps) {
    texts.push_back(absl::StrCat(g.begin_ns, "-", g.end_ns, " ", GapKindName(g.kind)));
  }
  return texts;
}

// GPipe, P = 2, M = 2, F = 12, B = 24: a picture of the whole step.
TEST(FindGaps, OfGpipe) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule schedule, MakeSchedule("gpipe", {2, 2}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SimulatedRun run, Simulated(schedule));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<DeviceGaps> gaps,
                               FindGaps(run.program, run.costs, run.trace, kMemory));
  ASSERT_EQ(run.trace.makespan, Nanoseconds(108));
  EXPECT_THAT(Texts(gaps[0]), ElementsAre("24-60 forward-backward"));
  EXPECT_THAT(Texts(gaps[1]), ElementsAre("0-12 fill-drain", "84-108 fill-drain"));
  EXPECT_EQ(gaps[0].busy, Nanoseconds(72));
  EXPECT_EQ(gaps[0].idle, Nanoseconds(36));
  const Gap& wait = gaps[0].gaps[0];
  EXPECT_EQ(run.program.instructions[0][wait.instruction].op, OpCode::kWait);
  // State, two kept activations, and the receive of the first gradient.
  EXPECT_EQ(wait.free, kMemory - Bytes(2000 + 2 + 10));
  EXPECT_EQ(gaps[0].always_free, kMemory - Bytes(2000 + 2 + 10 + 30));
  EXPECT_EQ(GapName(wait, 0), absl::StrCat("gap 0 of device 0 (forward-backward, 36 ns, ",
                                           ToString(wait.free), " free)"));
}

TEST(FindGaps, OfOneFOneBHaveAllKindsOfPasses) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule schedule, MakeSchedule("1f1b", {4, 4}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SimulatedRun run, Simulated(schedule));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<DeviceGaps> gaps,
                               FindGaps(run.program, run.costs, run.trace, kMemory));
  EXPECT_THAT(Texts(gaps[3]), ElementsAre("0-36 fill-drain", "180-252 fill-drain"));
  EXPECT_THAT(Texts(gaps[0]), testing::Contains(testing::HasSubstr("forward-backward")));
  EXPECT_THAT(Texts(gaps[0]), testing::Contains(testing::HasSubstr("between passes")));
}

// What a device does in each nanosecond, and what it then holds, painted one by one.
void ExpectAsPainted(const SimulatedRun& run, const std::vector<DeviceGaps>& gaps,
                     const std::string& what) {
  const auto levels = MemoryLevels(run.program, run.costs, run.trace);
  const int64_t makespan = run.trace.makespan.value();
  for (size_t d = 0; d < gaps.size(); ++d) {
    std::vector<bool> idle(makespan, true), in_gap(makespan, false);
    for (const ExecutedInstruction& s : SpansOf(run.program, run.trace, d)) {
      const bool waits = s.op == OpCode::kWait || s.op == OpCode::kReduceWait ||
                         s.op == OpCode::kGatherWait || s.op == OpCode::kNormWait;
      for (int64_t t = s.begin_ns; t < s.end_ns; ++t) idle[t] = waits;
    }
    int64_t last = 0;
    for (const Gap& gap : gaps[d].gaps) {
      EXPECT_GE(gap.begin_ns, last) << what;
      EXPECT_GT(gap.end_ns, gap.begin_ns) << what;
      last = gap.end_ns;
      Bytes most;
      for (int64_t t = gap.begin_ns; t < gap.end_ns; ++t) {
        in_gap[t] = true;
        Bytes level;
        for (const MemoryPoint& p : levels[d]) {
          if (p.time_ns <= t) level = p.parts.total();
          if (p.time_ns == t && t > gap.begin_ns) most = std::max(most, p.parts.total());
        }
        most = std::max(most, level);
      }
      EXPECT_EQ(gap.free, kMemory - most) << what << " device " << d << " at " << gap.begin_ns;
      EXPECT_GE(gap.free, gaps[d].always_free) << what;
    }
    EXPECT_EQ(in_gap, idle) << what << " device " << d;
  }
}

// Gaps and what a device does are the step to the nanosecond, and the gaps within the interval of
// the bubble are the bubble, less what is neither a gap nor a pass.
void ExpectTheBubble(const SimulatedRun& run, const std::vector<DeviceGaps>& gaps,
                     const std::string& what) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TraceAnalysis analysis, Analyze(run.program, run.trace));
  const auto within = [&](int64_t begin, int64_t end) {
    return std::max<int64_t>(
        0, std::min(end, analysis.interval_end_ns) - std::max(begin, analysis.interval_begin_ns));
  };
  int64_t all_idle = 0, all_other = 0, all_compute = 0;
  for (size_t d = 0; d < gaps.size(); ++d) {
    EXPECT_EQ(gaps[d].busy + gaps[d].idle, run.trace.makespan) << what;
    const Breakdown& wall = analysis.devices[d].wall;
    EXPECT_EQ(gaps[d].busy - wall.compute - wall.optimizer - wall.communication, Nanoseconds(0))
        << what;
    for (const Gap& gap : gaps[d].gaps) all_idle += within(gap.begin_ns, gap.end_ns);
    for (const ExecutedInstruction& s : SpansOf(run.program, run.trace, d)) {
      const bool steps =
          s.op == OpCode::kStep || (s.op == OpCode::kCompute && s.action.kind == ActionKind::kStep);
      if (steps || s.op == OpCode::kSend) all_other += within(s.begin_ns, s.end_ns);
    }
    all_compute += wall.compute.value();
  }
  const int64_t capacity = analysis.interval().value() * static_cast<int64_t>(gaps.size());
  EXPECT_EQ(all_idle + all_other, capacity - all_compute) << what;
  EXPECT_NEAR(static_cast<double>(all_idle + all_other) / static_cast<double>(capacity),
              analysis.overall.bubble, 1e-12)
      << what;
}

TEST(FindGaps, OfEverySchemeAreTheBubbleToTheNanosecond) {
  for (const Scheme& scheme : Catalog()) {
    int served = 0;
    for (int p : {1, 2, 4}) {
      for (int m : {2, 8, 12}) {
        for (const int64_t hop : {0, 5}) {
          SchemeParams params{p, m};
          params.data_parallel = hop > 0 ? 2 : 1;
          const absl::StatusOr<Schedule> schedule = MakeSchedule(scheme.name, params);
          if (!schedule.ok()) continue;
          absl::StatusOr<SimulatedRun> run = Simulated(
              *schedule, hop > 0 && m == 8 ? Sharding::kFully : Sharding::kReplicated, hop);
          if (!run.ok()) continue;  // a scheme that does not shard
          const std::string what = absl::StrCat(scheme.name, " ", p, " ", m, " ", hop);
          PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<DeviceGaps> gaps,
                                       FindGaps(run->program, run->costs, run->trace, kMemory));
          ExpectTheBubble(*run, gaps, what);
          ExpectAsPainted(*run, gaps, what);
          ++served;
        }
      }
    }
    EXPECT_GT(served, 6) << scheme.name;
  }
}

TEST(FindGaps, WaitsForReductionsAreTheirOwn) {
  SchemeParams params{2, 4};
  params.data_parallel = 2;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule schedule, MakeSchedule("1f1b", params));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SimulatedRun run,
                               Simulated(schedule, Sharding::kReplicated, 5));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<DeviceGaps> gaps,
                               FindGaps(run.program, run.costs, run.trace, kMemory));
  int reductions = 0;
  for (const DeviceGaps& device : gaps) {
    for (const Gap& gap : device.gaps) {
      if (gap.kind != GapKind::kReduction) continue;
      ++reductions;
      EXPECT_EQ(run.program.instructions[gap.device][gap.instruction].op, OpCode::kReduceWait);
    }
  }
  EXPECT_GT(reductions, 0);
}

// A step that does not fit leaves nothing, not less than nothing.
TEST(FindGaps, NothingIsFreeOnADeviceThatIsTooSmall) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule schedule, MakeSchedule("gpipe", {2, 2}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SimulatedRun run, Simulated(schedule));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<DeviceGaps> gaps,
                               FindGaps(run.program, run.costs, run.trace, Bytes(1000)));
  EXPECT_EQ(gaps[0].gaps[0].free, Bytes(0));
  EXPECT_EQ(gaps[0].always_free, Bytes(0));
}

TEST(FindGaps, RefusesATraceOfAnotherProgram) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule schedule, MakeSchedule("gpipe", {2, 2}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SimulatedRun run, Simulated(schedule));
  Trace fewer = run.trace;
  fewer.devices.pop_back();
  EXPECT_THAT(FindGaps(run.program, run.costs, fewer, kMemory),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 devices")));
  Trace other = run.trace;
  other.devices[1].spans.pop_back();
  EXPECT_THAT(FindGaps(run.program, run.costs, other, kMemory),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("device 1: the trace's")));
  Trace back = run.trace;
  back.devices[1].spans.back().end_ns = -1;
  EXPECT_THAT(FindGaps(run.program, run.costs, back, kMemory),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the order of time")));
  Trace overtaken = run.trace;
  overtaken.devices[1].order.resize(run.program.instructions[1].size());
  EXPECT_THAT(FindGaps(run.program, run.costs, overtaken, kMemory),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not in that of the")));
  Trace shorter = run.trace;
  shorter.makespan = Nanoseconds(50);
  EXPECT_THAT(FindGaps(run.program, run.costs, shorter, kMemory),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("makespan of 50 ns")));
}

}  // namespace
}  // namespace pipelab
