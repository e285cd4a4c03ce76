#include "experiments/modern/primus_schedules.h"

#include <iterator>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(PrimusSchedules, ArePredictedForEachNumberOfMicroBatches) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<PrimusSchedule> rows, PredictPrimusSchedules());
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0].scheme, "1f1b");
  for (const PrimusSchedule& row : rows) {
    ASSERT_EQ(row.predicted.size(), std::size(kPrimusMicroBatches));
    EXPECT_GT(row.gib, 0);
    // Bubbles are a smaller part of longer steps, and so is what a schedule gains.
    if (row.scheme == "1f1b") continue;
    EXPECT_GT(row.predicted.front(), row.predicted.back()) << row.name;
  }
  EXPECT_LT(rows[5].gib, rows[0].gib);  // V-Min is for memory
  EXPECT_THAT(PrimusSchedulesTable(rows).status(), IsOk());
  EXPECT_THAT(CheckClaim(PrimusSchedulesClaim(rows)), IsOk());
}

TEST(PrimusSchedules, AClaimSaysForWhichMicroBatchesItHolds) {
  const auto row = [](double measured, double at_24) {
    PrimusSchedule r;
    r.measured = measured;
    r.predicted = {1.5, 1.5, at_24, 1.5, 1.5};
    return r;
  };
  std::vector<PrimusSchedule> rows = {row(1, 1), row(1.1, 1.13), row(1.2, 1.19)};
  const Claim claim = PrimusSchedulesClaim(rows);
  EXPECT_EQ(claim.state, ClaimState::kDependsOn);
  EXPECT_THAT(claim.reason, testing::HasSubstr("holds for M = 24"));
  EXPECT_NEAR(*claim.value, 3, 1e-9);
  rows[2].predicted[2] = 1.12;  // slower than the second
  EXPECT_EQ(PrimusSchedulesClaim(rows).state, ClaimState::kMissed);
  EXPECT_EQ(PrimusSchedulesClaim({}).state, ClaimState::kNotMade);
}

}  // namespace
}  // namespace pipelab
