#include <string>
#include <vector>

#include "experiments/grids/ablation.h"
#include "experiments/grids/batch_sweep.h"
#include "experiments/grids/large_scale.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/step/step_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

class GridTablesTest : public StepTest {
 protected:
  const std::vector<int64_t> batches_ = {8, 32};
};

TEST_F(GridTablesTest, EveryMethodAtEveryBatch) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const BatchSweep sweep,
      SweepBatches(grid_,
                   {16, batches_, PublishedMethods(), {Recompute::kNone, Recompute::kFull}}));
  ASSERT_EQ(sweep.cells.size(), 2 * PublishedMethods().size());
  for (const SweepCell& cell : sweep.cells) {
    SCOPED_TRACE(cell.method);
    if (!cell.best.has_value()) {
      EXPECT_FALSE(cell.missing.empty());
      continue;
    }
    EXPECT_EQ(cell.best->config.batch(), cell.batch);
    EXPECT_EQ(cell.best->config.devices(), 16);
    EXPECT_EQ(sweep.Find(cell.method, cell.batch)->step_time, cell.best->step_time);
  }
  EXPECT_EQ(sweep.Find("breadth-first", 64), nullptr);
  const Table table = BatchSweepTable("methods", "caption", sweep);
  EXPECT_THAT(table.status(), IsOk());
  EXPECT_EQ(table.rows().size(), sweep.cells.size());
  for (const Series& s : BatchSweepSeries(sweep)) {
    EXPECT_EQ(s.values.size(), s.steps.size()) << s.name;
  }
  EXPECT_GE(sweep.considered, sweep.simulated);
}

// The ablation begins at one method's best and ends at the other's; the headline is their ratio.
TEST_F(GridTablesTest, AblationJoinsTheTwoBests) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const BatchSweep sweep,
      SweepBatches(grid_,
                   {16, batches_, PublishedMethods(), {Recompute::kNone, Recompute::kFull}}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Table t, AblationTable(grid_, sweep, 8));
  ASSERT_THAT(t.status(), IsOk());
  ASSERT_GE(t.rows().size(), 2u);
  EXPECT_DOUBLE_EQ(*t.rows()[1][1].number, sweep.Find("depth-first", 8)->tflops_per_device);
  EXPECT_THAT(t.rows()[0].back().text, HasSubstr("whole_messages"));
  EXPECT_DOUBLE_EQ(*t.rows().back()[1].number, sweep.Find("breadth-first", 8)->tflops_per_device);
  EXPECT_FALSE(HeadlineNotes(sweep, batches_).empty());
  const std::vector<Claim> claims = HeadlineClaims(sweep, batches_);
  ASSERT_EQ(claims.size(), 3u);
  for (const Claim& c : claims) EXPECT_THAT(CheckClaim(c), IsOk());
  EXPECT_THAT(claims[0].text, HasSubstr("0.500 samples a GPU"));
  EXPECT_EQ(claims[0].published, "up to +43 %");
  EXPECT_NEAR(*claims[0].value,
              100 * (sweep.Find("breadth-first", 8)->tflops_per_device /
                         sweep.Find("depth-first", 8)->tflops_per_device -
                     1),
              1e-9);
}

// More GPUs train in fewer days, for more GPU-days or as many.
TEST_F(GridTablesTest, MoreDevicesAreFasterAndNotCheaper) {
  LargeScaleOptions options;
  options.devices = {8, 32};
  options.batches = {32, 64};
  options.methods = {PublishedMethods()[0]};
  options.critical_batch = 50;
  options.least_steps = 1000;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Table t, LargeScaleTable(grid_, options));
  ASSERT_THAT(t.status(), IsOk());
  ASSERT_EQ(t.rows().size(), 2u);
  EXPECT_GT(*t.rows()[0][3].number, *t.rows()[1][3].number);
  EXPECT_LE(*t.rows()[0][4].number, *t.rows()[1][4].number * 1.05);
}

}  // namespace
}  // namespace pipelab
