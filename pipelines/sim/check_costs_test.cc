// What a simulation's time can count.
#include "pipelines/sim/check_costs.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/sim/instruction_cost.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/hand_costs.h"
#include "tests/support/test_schedules.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

// A time as long as all parts of a program may be together is the longest; any fill may be it.
TEST(Simulate, RefusesFillsBeyondCounting) {
  Program p = LowerPlain(ChainOf(1, {"0F0 0B0", "1F0 1B0"}));
  const CostTable costs = HandCosts(p.schedule);
  for (const int long_one : {0, 1}) {
    p.fills.assign(2, Fill());
    p.fills[long_one].work = LongestTime(p);
    EXPECT_THAT(Simulate(p, costs), IsOk());
    p.fills[long_one].work += Nanoseconds(1);
    const absl::Status status = Simulate(p, costs).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("fill " + std::to_string(long_one) + ": ")));
    EXPECT_TRUE(IsTooLong(status));
  }
}

// Bytes of nothing take no time on the slowest links.
TEST(Simulate, TheLargestOfNothingIsNothing) {
  const Program p = LowerPlain(ChainOf(1, {"0F0 0B0", "1F0 1B0"}));
  CostTable costs = HandCosts(p.schedule);
  costs.edge_bytes[0] = Bytes(0);
  EXPECT_FALSE(IsTooLong(Simulate(p, CostTable()).status()));
  const InstructionCostTable instruction_costs(p, costs);
  EXPECT_EQ(instruction_costs.LargestMessage(), Bytes(0));
  EXPECT_EQ(instruction_costs.LargestHostCopy(), Bytes(0));
}

}  // namespace
}  // namespace pipelab
