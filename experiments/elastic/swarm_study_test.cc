#include "experiments/elastic/swarm_study.h"

#include <algorithm>

#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

// A small swarm's study has all rows, tables and claims that hold together.
TEST(SwarmStudy, OfASmallSwarm) {
  SwarmStudySize size;
  size.stages = 4;
  size.peers = 50;
  size.hours = 6;
  size.traces = 2;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SwarmStudy study, SimulateSwarms(size));
  for (const Table& table : SwarmTables(study)) {
    EXPECT_THAT(table.status(), IsOk()) << table.id();
    EXPECT_FALSE(table.rows().empty()) << table.id();
  }
  for (const Claim& claim : SwarmClaims(study)) EXPECT_THAT(CheckClaim(claim), IsOk());
  EXPECT_EQ(study.rebalancing.size(), 12u);
  for (const RebalanceRow& row : study.rebalancing) {
    EXPECT_GT(row.figures.throughput, 0.5 * row.figures.best) << row.rule;
    EXPECT_EQ(row.figures.moves > 0, row.every > Nanoseconds(0)) << row.rule;
  }
  for (const LawRow& row : study.law) {
    // No device does more than its time, nor more than its link brings.
    EXPECT_LE(row.figures.device_use, 1.01 * std::min(1.0, row.compute / row.transfer));
  }
  EXPECT_FALSE(SimulateSwarms({"no-such-cluster"}).ok());
}

}  // namespace
}  // namespace pipelab
