// The closed form of a batch's time against the simulator.
#include "pipelines/planners/batch_time.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/plan_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

// 1F1B without transfers; nanoseconds.
double Simulated(const std::vector<BatchPassTimes>& stages, int micro_batches) {
  SchemeParams params;
  params.devices = static_cast<int>(stages.size());
  params.micro_batches = micro_batches;
  const Schedule schedule = MakeSchedule("1f1b", params).value();
  CostTable costs = CostTable::Unit(schedule);
  for (size_t s = 0; s < stages.size(); ++s) {
    costs.stages[s].forward = Nanoseconds(static_cast<int64_t>(stages[s].forward));
    costs.stages[s].backward_input = Nanoseconds(static_cast<int64_t>(stages[s].backward));
    costs.stages[s].backward_weight = Nanoseconds(0);
    costs.stages[s].step = Nanoseconds(0);
  }
  LoweringOptions options;
  return static_cast<double>(
      Simulate(Lower(schedule, options).value(), costs).value().makespan.value());
}

TEST(BatchTime, OfEqualStages) {
  for (int stages = 1; stages <= 6; ++stages) {
    for (int m = 1; m <= 12; ++m) {
      const std::vector<BatchPassTimes> all(stages, {10, 20, 0});
      EXPECT_EQ(BatchTime(all, m), 30 * (m + stages - 1));
      EXPECT_EQ(BatchTime(all, m), Simulated(all, m));
    }
  }
}

TEST(BatchTime, IsWhatTheSimulatorHasAtLeast) {
  int equal = 0;
  constexpr int kRounds = 400;
  for (int round = 0; round < kRounds; ++round) {
    Draw draw(round, "batch time");
    std::vector<BatchPassTimes> stages(1 + draw.Below(6));
    for (BatchPassTimes& stage : stages) stage = {10 + draw.Number(30), 10 + draw.Number(50), 0};
    const int m = 1 + static_cast<int>(draw.Below(16));
    const double closed = BatchTime(stages, m), simulated = Simulated(stages, m);
    EXPECT_LE(closed, simulated);
    EXPECT_LE(simulated, 1.25 * closed);
    equal += closed == simulated ? 1 : 0;
  }
  EXPECT_GT(equal, kRounds / 2);
}

TEST(BatchTime, SumsOfGradients) {
  // Stage 0 sums after the last backward; stage 1 has done so before, unless its sum is long.
  EXPECT_EQ(BatchTime({{1, 2, 5}, {1, 2, 4}}, 3), 3 * 3 + 3 + 5);
  EXPECT_EQ(BatchTime({{1, 2, 0}, {1, 2, 9}}, 3), 1 + 3 * 3 + 9);
}

TEST(BatchTime, FromTheEndIsTheSame) {
  for (int round = 0; round < 1000; ++round) {
    Draw draw(round, "batch time");
    std::vector<BatchPassTimes> stages(1 + draw.Below(7));
    for (BatchPassTimes& stage : stages) stage = {draw.Number(9), draw.Number(9), draw.Number(40)};
    const int64_t m = 1 + draw.Below(6);
    BatchTimeFromEnd from_end(m);
    for (size_t s = stages.size(); s-- > 0;) from_end.PutInFront(stages[s]);
    ASSERT_EQ(from_end.time(), BatchTime(stages, m));
  }
}

}  // namespace
}  // namespace pipelab
