#include "experiments/graphs/preparation_study.h"

#include <algorithm>

#include "experiments/graphs/paper_epochs.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(PreparationStudy, OfASmallGraph) {
  GeneratedGraph shape;
  shape.degrees_V = PowerLawDegrees(800, 1.7, 2, 60, 1);
  const GraphData data = GenerateGraph(shape, 2);
  PreparationStudySize size;
  size.batch = 128;
  size.hidden = 16;
  size.repeats = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const OverlapRun run, MeasureOverlap(data, size));
  EXPECT_TRUE(run.equal_losses);
  EXPECT_GT(run.prepare, 0);
  EXPECT_GT(run.train, 0);
  ASSERT_EQ(run.rows.size(), 8u);
  // In line nothing hides: the simulator's epoch is the sum of all stages.
  EXPECT_NEAR(run.rows[0].simulated, run.prepare + run.train, 0.01 * run.rows[0].simulated);
  for (const OverlapRun::Row& r : run.rows) {
    EXPECT_GE(r.simulated * 1.001, r.longer);
    EXPECT_LE(r.simulated, 1.001 * run.rows[r.threads > 1 ? 6 : 0].longer);
  }
  const Table table = OverlapTable(run);
  EXPECT_THAT(table.status(), IsOk());
  EXPECT_EQ(table.rows().size(), 8u);
  EXPECT_GT(run.first_come, 0);
  EXPECT_GT(run.in_order, 0);
  for (const Claim& claim : OverlapClaims(run)) EXPECT_THAT(CheckClaim(claim), IsOk()) << claim.id;
}

TEST(PreparationStudy, ThePapersEpochs) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<PaperEpoch> epochs, PaperEpochs());
  ASSERT_EQ(epochs.size(), 4u);
  for (const PaperEpoch& e : epochs) {
    // Phases one after the other are the baseline's epoch again.
    if (e.baseline > 0) {
      EXPECT_NEAR(e.in_line, e.baseline, 0.001 * e.baseline) << e.data;
      EXPECT_LT(e.figures.epoch, e.baseline / 2) << e.data;
    }
  }
  const Table table = PaperTable(epochs);
  EXPECT_THAT(table.status(), IsOk());
  for (const Claim& claim : PaperClaims(epochs)) EXPECT_THAT(CheckClaim(claim), IsOk()) << claim.id;
}

}  // namespace
}  // namespace pipelab
