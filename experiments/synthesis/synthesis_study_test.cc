// The study's figures at its smallest: never longer than the catalogue, and proven where small.
#include "experiments/synthesis/synthesis_study.h"

#include <vector>

#include "experiments/synthesis/idle_time.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(SynthesisStudy, HoldsAtItsSmallest) {
  SynthesisStudySize size;
  size.most_devices = 2;
  size.most_small = 2;
  size.large = false;
  size.rounds = 0;
  size.widest = 8;
  size.cases = size.slice_cases = 1;
  size.exact_nodes = 20000;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SynthesisStudy study, RunSynthesisStudy(size));
  for (const SynthesizedRow& row : study.equal) {
    EXPECT_LE(row.bound, row.makespan) << row.name;
    if (row.scheme.empty()) continue;
    EXPECT_LE(row.makespan, row.catalogue) << row.name;
  }
  for (const SynthesizedRow& row : study.small) EXPECT_TRUE(row.optimal) << row.name;
  ASSERT_EQ(study.unequal.size(), 1u);
  EXPECT_LE(study.unequal[0].step_ms, study.unequal[0].catalogue_ms);
  EXPECT_LE(study.unequal[0].bound_ms, study.unequal[0].step_ms);
  // Nothing of the catalogue fits into room for two, whole micro-batches or slices.
  ASSERT_EQ(study.slices.size(), 3u);
  for (const SlicesRow& row : study.slices) {
    EXPECT_TRUE(row.found.scheme.empty()) << row.slices;
    EXPECT_LE(row.found.bound_ms, row.found.step_ms) << row.slices;
  }
  EXPECT_LT(study.slices[2].found.step_ms, study.slices[1].found.step_ms);
  EXPECT_LT(study.slices[2].found.step_ms, study.slices[0].found.bound_ms / 2);
  for (const Table& table : SynthesisTables(study)) EXPECT_THAT(table.status(), IsOk());
  for (const Claim& claim : SynthesisClaims(study)) EXPECT_THAT(CheckClaim(claim), IsOk());
}

// Idle times of four devices: never more than the better of the schedules that are there, and
// not less than the bound.
TEST(IdleTimes, AreThoseOfTheBestAtTheMost) {
  SynthesisStudySize size;
  size.idle_devices = 4;
  size.idle_rounds = 2;
  size.idle_moves = 1000;
  size.widest = 8;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<IdleRow> rows, RunIdleTimes(size));
  ASSERT_EQ(rows.size(), 9u);
  for (const IdleRow& row : rows) {
    ASSERT_GE(row.synthesized, 0) << row.micro_batches << " " << row.memory;
    EXPECT_GE(row.synthesized, row.bound);
    if (row.best() >= 0) {
      EXPECT_LE(row.synthesized, row.best());
    }
  }
  EXPECT_THAT(IdleTable(rows).status(), IsOk());
  for (const Claim& claim : IdleClaims(rows)) EXPECT_THAT(CheckClaim(claim), IsOk());
}

}  // namespace
}  // namespace pipelab
