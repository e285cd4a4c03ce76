#include "experiments/simulate/simulated_run.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

Schedule ScheduleOfSize(const std::string& name, int devices, int micro_batches) {
  return *MakeSchedule(name, {devices, micro_batches});
}

// (P - 1) / (M + P - 1), makespan (M + P - 1) (F + B), at most min(M, P - d) in flight.
TEST(SimulatedRun, HasTheClosedFormsOf1F1B) {
  for (int p : {1, 2, 4, 7}) {
    for (int m : {1, 3, 8, 16}) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const SimulatedRun run,
                                   RunSimulated(ScheduleOfSize("1f1b", p, m), {}));
      const RunFigures f = FiguresOf(run);
      EXPECT_EQ(f.makespan, 3.0 * (m + p - 1));
      EXPECT_DOUBLE_EQ(f.bubble, (p - 1.0) / (m + p - 1));
      ASSERT_EQ(f.devices.size(), static_cast<size_t>(p));
      for (int d = 0; d < p; ++d) {
        EXPECT_EQ(f.devices[d].busy, 3.0 * m);
        EXPECT_EQ(f.devices[d].idle, 3.0 * (p - 1));
        EXPECT_EQ(f.devices[d].span, 3.0 * (m + p - 1) - 3.0 * d);
        EXPECT_EQ(f.devices[d].peak_in_flight, std::min(m, p - d));
      }
    }
  }
}

// Tenths are exact: ten times 0.1 is 1 and not 0.9999999999999999.
TEST(SimulatedRun, DecimalsAreExact) {
  SimulatedTimes times;
  times.forward = "0.1";
  times.backward_input = "0.20";
  times.backward_weight = ".3";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SimulatedRun run,
                               RunSimulated(ScheduleOfSize("gpipe", 1, 10), times));
  EXPECT_EQ(run.nanoseconds_per_unit, 10);
  EXPECT_EQ(FiguresOf(run).makespan, 6.0);
  times.hop = "0.0625";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SimulatedRun with_hops,
                               RunSimulated(ScheduleOfSize("gpipe", 2, 1), times));
  EXPECT_EQ(FiguresOf(with_hops).makespan, 1.325);
}

TEST(SimulatedRun, TakesATimeAStage) {
  SimulatedTimes times;
  times.forward = "1,2,3,4";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SimulatedRun run,
                               RunSimulated(ScheduleOfSize("gpipe", 4, 1), times));
  EXPECT_EQ(FiguresOf(run).makespan, 18.0);
  EXPECT_EQ(FiguresOf(run).devices[2].busy, 5.0);
  EXPECT_THAT(RunSimulated(ScheduleOfSize("gpipe", 3, 1), times),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--forward=1,2,3,4: 4 numbers, but the schedule has 3 stages; give one "
                       "number or one for each"));
}

TEST(SimulatedRun, RefusesWhatIsNoTime) {
  for (const char* bad : {"", "-1", "1e3", "x", ".", "1..2", "1.0000000001", "1000000000000000"}) {
    SimulatedTimes times;
    times.backward_weight = bad;
    EXPECT_THAT(
        RunSimulated(ScheduleOfSize("gpipe", 2, 2), times),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(std::string("--backward_weight=") + bad + ": must be a decimal")))
        << bad;
  }
  SimulatedTimes times;
  times.forward = "999999999999999";
  times.hop = "0.000000001";
  EXPECT_THAT(RunSimulated(ScheduleOfSize("gpipe", 2, 2), times),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too large or too fine")));
}

}  // namespace
}  // namespace pipelab
