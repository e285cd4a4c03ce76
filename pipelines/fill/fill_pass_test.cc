// Fill instructions: where they stand, what the simulator makes of them under every scheme, and
// what is foreseen from step to step.
#include "pipelines/fill/fill_pass.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/analysis/analysis.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/program_checker.h"
#include "tools/base/status_macros.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr Bytes kFillMemory(100000);

struct FilledStep {
  Program program;
  CostTable costs;
  Trace trace;
  std::vector<DeviceGaps> gaps;
};

absl::StatusOr<FilledStep> SimulatedStep(const Schedule& schedule, int64_t hop, bool overlap,
                                         Sharding sharding) {
  FilledStep step;
  LoweringOptions options;
  options.sharding = sharding;
  PIPELAB_ASSIGN_OR_RETURN(step.program, Lower(schedule, options));
  step.costs = CostTable::Unit(step.program.schedule, Nanoseconds(120));
  step.costs.hop_latency = step.costs.reduce = Nanoseconds(hop);
  step.costs.overlap = overlap;
  for (StageCost& stage : step.costs.stages) stage.step = Nanoseconds(hop);
  PIPELAB_ASSIGN_OR_RETURN(step.trace, Simulate(step.program, step.costs));
  PIPELAB_ASSIGN_OR_RETURN(step.gaps, FindGaps(step.program, step.costs, step.trace, kFillMemory));
  return step;
}

FilledStep GPipe() {
  return SimulatedStep(*MakeSchedule("gpipe", {2, 2}), 0, true, Sharding::kReplicated).value();
}

// Two jobs, whose plans fill every gap to the nanosecond.
std::vector<FillProblem> ProblemsOf(const FilledStep& step) {
  FillJob small, large;
  small.name = "small";
  small.pieces = {{Nanoseconds(1), Bytes(1)}};
  large.name = "large";
  large.pieces = {{Nanoseconds(7), Bytes(9)}, {Nanoseconds(12), Bytes(9)}};
  small.rounds = large.rounds = 1 << 20;
  large.switch_time = Nanoseconds(2);
  std::vector<FillProblem> problems;
  for (const DeviceGaps& device : step.gaps) {
    problems.push_back({device.gaps, device.always_free, {large, small}});
  }
  return problems;
}

std::vector<FillPlan> PlansOf(const std::vector<FillProblem>& problems) {
  std::vector<FillPlan> plans;
  for (const FillProblem& problem : problems) plans.push_back(GreedyFill(problem));
  return plans;
}

// What others can tell: waits end later where a fill is in front of several.
std::vector<std::string> Training(const Program& program, const Trace& trace) {
  std::vector<std::string> spans;
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    for (const ExecutedInstruction& s : SpansOf(program, trace, d)) {
      const bool waits = s.op == OpCode::kWait || s.op == OpCode::kReduceWait ||
                         s.op == OpCode::kGatherWait || s.op == OpCode::kNormWait;
      if (waits || s.op == OpCode::kReceive || s.op == OpCode::kFill) continue;
      spans.push_back(absl::StrCat(d, " ", OpCodeName(s.op), " ", ToString(s.action), " ", s.arg,
                                   " ", s.begin_ns, "-", s.end_ns));
    }
  }
  return spans;
}

TEST(FillPass, OfGpipe) {
  const FilledStep step = GPipe();
  const Program open = WithFills(step.program, step.gaps);
  ASSERT_EQ(open.fills.size(), 3u);  // gaps_test.cc has the picture
  EXPECT_EQ(CheckProgram(open), "");
  const std::vector<Instruction>& first = open.instructions[0];
  size_t at = 0;
  while (first[at].op != OpCode::kFill) ++at;
  EXPECT_EQ(first[at + 1].op, OpCode::kWait);
  EXPECT_EQ(open.fills[first[at].arg].time, Nanoseconds(360));
  EXPECT_EQ(open.fills[first[at].arg].bytes, step.gaps[0].gaps[0].free);
  EXPECT_EQ(open.fills[first[at].arg].job, -1);
  EXPECT_EQ(open.instructions[1].back().op, OpCode::kFill);
  EXPECT_EQ(open.fills.back().time, Nanoseconds(240));
}

// A span of a fill says which job and pieces ran.
TEST(FillPass, SpansHaveTheirJob) {
  const FilledStep step = GPipe();
  std::vector<FillProblem> problems = ProblemsOf(step);
  problems[0].jobs[0].pieces = {{Nanoseconds(350), Bytes(1)}};
  FillPlan plan;
  plan.runs = {{0, 0, 0, 0, 1}, {0, 0, 1, 0, 8}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program planned,
                               WithFills(step.program, problems, {plan, FillPlan()}));
  EXPECT_EQ(CheckProgram(planned), "");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(planned, step.costs));
  std::vector<std::string> texts;
  for (const ExecutedInstruction& s : SpansOf(planned, trace, 0)) {
    if (s.op != OpCode::kFill) continue;
    const Fill& fill = planned.fills[s.arg];
    texts.push_back(absl::StrCat(problems[0].jobs[fill.job].name, " ", fill.first_piece, "+",
                                 fill.pieces, " ", s.begin_ns, "-", s.end_ns, " of ",
                                 fill.time.value()));
  }
  EXPECT_THAT(texts, testing::ElementsAre("large 0+1 240-592 of 360", "small 0+8 592-600 of 8"));
}

// Under every scheme: full gaps leave the training where it was, and are found again as they were.
TEST(FillPass, APlanThatFitsCostsTheTrainingNothing) {
  int64_t filled = 0;
  for (const Scheme& scheme : Catalog()) {
    int served = 0;
    for (const int m : {2, 8, 12}) {
      for (const int64_t hop : {0, 50}) {
        for (const bool overlap : {true, false}) {
          SchemeParams params{4, m};
          params.data_parallel = hop > 0 ? 2 : 1;
          const absl::StatusOr<Schedule> schedule = MakeSchedule(scheme.name, params);
          if (!schedule.ok()) continue;
          const absl::StatusOr<FilledStep> step =
              SimulatedStep(*schedule, hop, overlap,
                            hop > 0 && m == 8 ? Sharding::kFully : Sharding::kReplicated);
          if (!step.ok()) continue;  // a scheme that does not shard
          SCOPED_TRACE(absl::StrCat(scheme.name, " ", m, " ", hop, " ", overlap));
          const std::vector<FillProblem> problems = ProblemsOf(*step);
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Program planned,
                                       WithFills(step->program, problems, PlansOf(problems)));
          EXPECT_EQ(CheckProgram(planned), "");
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(planned, step->costs));
          EXPECT_EQ(trace.makespan, step->trace.makespan);
          EXPECT_EQ(Training(planned, trace), Training(step->program, step->trace));
          PIPELAB_ASSERT_OK_AND_ASSIGN(const TraceAnalysis before,
                                       Analyze(step->program, step->trace));
          PIPELAB_ASSERT_OK_AND_ASSIGN(const TraceAnalysis after, Analyze(planned, trace));
          EXPECT_EQ(before.overall.bubble, after.overall.bubble);
          EXPECT_EQ(after.overall.wall.Total(), before.overall.wall.Total());
          PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<DeviceGaps> gaps,
                                       FindGaps(planned, step->costs, trace, kFillMemory));
          for (size_t d = 0; d < gaps.size(); ++d) {
            ASSERT_EQ(gaps[d].gaps.size(), step->gaps[d].gaps.size());
            EXPECT_EQ(gaps[d].idle, step->gaps[d].idle);
            for (size_t g = 0; g < gaps[d].gaps.size(); ++g) {
              const Gap &one = gaps[d].gaps[g], &other = step->gaps[d].gaps[g];
              EXPECT_EQ(one.begin_ns, other.begin_ns);
              EXPECT_EQ(one.end_ns, other.end_ns);
              EXPECT_EQ(one.free, other.free);
              EXPECT_EQ(one.kind, other.kind);
              EXPECT_EQ(one.filled, one.length());
              filled += one.filled.value();
            }
          }
          ++served;
        }
      }
    }
    EXPECT_GT(served, 3) << scheme.name;
  }
  EXPECT_GT(filled, 0);
}

// The last device's first fill: everything waits for it.
TEST(FillPass, WhatIsTooLongMakesTheTrainingLateByThat) {
  const FilledStep step = GPipe();
  for (const int64_t over : {1, 10, 1000}) {
    for (const size_t fill : {0, 1, 2}) {
      Program late = WithFills(step.program, step.gaps);
      late.fills[fill].work = late.fills[fill].time + Nanoseconds(over);
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(late, step.costs));
      EXPECT_EQ(trace.makespan, step.trace.makespan + Nanoseconds(over)) << fill;
      EXPECT_EQ(CheckProgram(late),
                absl::StrCat("fill ", fill, " plans ", late.fills[fill].work.value(),
                             " ns and may take ", late.fills[fill].time.value()));
    }
  }
}

TEST(FillPass, EachStepOfAPlanHasItsPieces) {
  const FilledStep step = GPipe();
  std::vector<FillProblem> problems = ProblemsOf(step);
  for (FillProblem& problem : problems) problem.iterations = 3;
  const std::vector<FillPlan> plans = PlansOf(problems);
  std::vector<int64_t> done(2, 0);
  for (int iteration = 0; iteration < 3; ++iteration) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Program planned,
                                 WithFills(step.program, problems, plans, iteration));
    for (const Instruction& i : planned.instructions[0]) {
      if (i.op != OpCode::kFill) continue;
      const Fill& fill = planned.fills[i.arg];
      EXPECT_EQ(fill.first_piece, done[fill.job]);
      done[fill.job] += fill.pieces;
    }
  }
  EXPECT_GT(done[0] + done[1], 0);
  std::vector<FillPlan> wrong = plans;
  wrong[1].runs[0].pieces += 1000;
  EXPECT_THAT(WithFills(step.program, problems, wrong),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("device 1: fill plan: ")));
}

TEST(FillPass, AFillThatIsNotThereIsNamed) {
  Program program = WithFillPlaces(GPipe().program);
  EXPECT_EQ(CheckProgram(program), "");
  EXPECT_EQ(program.fills.size(), 6u);  // four messages, two ends
  Program more = program;
  more.fills.emplace_back();
  EXPECT_EQ(CheckProgram(more), "fill 6 is on no device");
  Program twice = program;
  twice.instructions[0].push_back(twice.instructions[0].back());
  EXPECT_THAT(CheckProgram(twice), HasSubstr("is there twice"));
  program.instructions[1].back().arg = 17;
  EXPECT_EQ(CheckProgram(program), "device 1 has fill 17 of 6");
}

// ---- What is foreseen.

constexpr int32_t kPlace = 5;

std::vector<DeviceGaps> GapsOfLength(int64_t length, int64_t filled = 0) {
  Gap gap;
  gap.end_ns = length;
  gap.instruction = kPlace;
  gap.filled = Nanoseconds(filled);
  gap.free = Bytes(7);
  return {{{gap}, {}, {}, {}}};
}

TEST(GapForecast, IsTheMedianOfTheLastSteps) {
  GapForecast forecast(3);
  for (const int64_t length : {900, 100}) {
    forecast.Add(GapsOfLength(length));
    EXPECT_EQ(forecast.TimeOf(0, kPlace), Nanoseconds(0));
  }
  forecast.Add(GapsOfLength(110));
  EXPECT_EQ(forecast.TimeOf(0, kPlace), Nanoseconds(110));
  EXPECT_EQ(forecast.TimeOf(0, kPlace + 1), Nanoseconds(0));
  EXPECT_EQ(forecast.TimeOf(1, kPlace), Nanoseconds(0));
  for (int step = 0; step < 9; ++step) forecast.Add(GapsOfLength(200 + step));  // steps drift
  EXPECT_EQ(forecast.TimeOf(0, kPlace), Nanoseconds(204));
}

TEST(GapForecast, AGapThatIsSeldomThereIsNone) {
  GapForecast forecast(1);
  for (int step = 0; step < 5; ++step) forecast.Add({DeviceGaps()});
  forecast.Add(GapsOfLength(100));
  EXPECT_EQ(forecast.TimeOf(0, kPlace), Nanoseconds(0));
  for (int step = 0; step < 5; ++step) forecast.Add(GapsOfLength(100));
  EXPECT_EQ(forecast.TimeOf(0, kPlace), Nanoseconds(100));
}

// A job that is late makes its gap longer; the forecast must not follow it.
TEST(GapForecast, LateJobsDoNotMakeGapsLonger) {
  GapForecast forecast(3);
  for (int step = 0; step < 3; ++step) forecast.Add(GapsOfLength(100));
  for (int step = 0; step < 50; ++step) {
    const int64_t time = forecast.TimeOf(0, kPlace).value();
    forecast.Add(GapsOfLength(time + 30, time + 30));
  }
  EXPECT_EQ(forecast.TimeOf(0, kPlace), Nanoseconds(100));
  for (int step = 0; step < 9; ++step) forecast.Add(GapsOfLength(150, 60));  // it did wait
  EXPECT_EQ(forecast.TimeOf(0, kPlace), Nanoseconds(150));
}

TEST(GapForecast, SetsTheFillsOfAProgram) {
  Program program = WithFillPlaces(GPipe().program);
  GapForecast forecast(1);
  size_t at = 0;
  while (program.instructions[0][at].op != OpCode::kFill) ++at;
  std::vector<DeviceGaps> gaps = GapsOfLength(100);
  gaps[0].gaps[0].instruction = static_cast<int32_t>(at);
  forecast.Add(gaps);
  forecast.SetFills(&program);
  for (size_t n = 0; n < program.fills.size(); ++n) {
    const bool here = static_cast<int32_t>(n) == program.instructions[0][at].arg;
    EXPECT_EQ(program.fills[n].time, Nanoseconds(here ? 100 : 0));
    EXPECT_EQ(program.fills[n].bytes, Bytes(here ? 7 : 0));
  }
}

}  // namespace
}  // namespace pipelab
