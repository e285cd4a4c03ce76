#include <string>
#include <vector>

#include "experiments/grids/ablation.h"
#include "experiments/grids/batch_sweep.h"
#include "experiments/grids/large_scale.h"
#include "experiments/grids/megatron_losses.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/step_testing.h"
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
  const std::vector<Claim> claims = OrderingClaims(sweep, batches_);
  ASSERT_EQ(claims.size(), 2u);
  for (const Claim& c : claims) EXPECT_THAT(CheckClaim(c), IsOk());
  // A batch at which nothing fits does not undo the comparison of those before.
  EXPECT_EQ(OrderingClaims(sweep, {8, 32, 1 << 20})[1].ours, claims[1].ours);
}

// Each loss alone, and all but it, lie between none and all; gaps and gathers only add.
TEST_F(GridTablesTest, EachLossOfMegatronIsPartOfAll) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const BatchSweep sweep,
      SweepBatches(grid_, {16, {16}, PublishedMethods(), {Recompute::kFull}}));
  const RankedStep* megatron = sweep.Find(kMegatron, 16);
  ASSERT_NE(megatron, nullptr);
  EXPECT_THAT(megatron->config.ToString(), HasSubstr("execution=megatron2022"));
  EXPECT_GT(megatron->step_time, sweep.Find("depth-first, overlapped", 16)->step_time);
  const Nanoseconds breadth = sweep.Find("breadth-first", 16)->step_time;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Table t, MegatronLossesTable(grid_, *megatron, breadth));
  ASSERT_THAT(t.status(), IsOk());
  const std::vector<Cell>& all = t.rows().back();
  EXPECT_DOUBLE_EQ(*all[1].number, ToMs(megatron->step_time));
  for (const std::vector<Cell>& row : t.rows()) {
    SCOPED_TRACE(row[0].text);
    EXPECT_LE(*row[1].number, *all[1].number);  // alone
    EXPECT_GE(*row[3].number, *all[3].number);  // all but it
    const bool adds = row[0].text.find("gap") != std::string::npos ||
                      row[0].text.find("passes") != std::string::npos;
    if (adds) {
      EXPECT_GT(*row[4].number, 0);
    }
  }
}

// A verdict for each of the three ways the range may lie.
TEST_F(GridTablesTest, TheHeadlineSaysOnWhatItDepends) {
  const auto of = [](const char* name, const char* unknown, double gain) {
    SensitivityCase c;
    c.name = name;
    c.unknown = unknown;
    c.in_range = c.name != "other";
    c.breadth_first.emplace().step_time = Nanoseconds(1000);
    c.megatron.emplace().step_time = Nanoseconds(static_cast<int64_t>(1000 + 10 * gain));
    return c;
  };
  const Claim met = HeadlineClaim({of("the defaults", "", 40), of("x", "x", 50)}, 64, 8);
  EXPECT_THAT(CheckClaim(met), IsOk());
  EXPECT_EQ(met.state, ClaimState::kMet);
  EXPECT_NEAR(*met.value, 40, 1e-9);
  EXPECT_THAT(met.text, HasSubstr("0.125 samples a GPU"));
  EXPECT_EQ(met.published, "up to +43 %");
  const Claim depends =
      HeadlineClaim({of("the defaults", "", 20), of("x", "the sends", 45)}, 64, 8);
  EXPECT_EQ(depends.state, ClaimState::kDependsOn);
  EXPECT_THAT(depends.reason, HasSubstr("holds for x; turns at x; the range gives +20.0 %"));
  // Met with the defaults is not enough.
  const Claim turns = HeadlineClaim({of("the defaults", "", 40), of("x", "x", 20)}, 64, 8);
  EXPECT_EQ(turns.state, ClaimState::kDependsOn);
  const Claim missed = HeadlineClaim(
      {of("the defaults", "", 20), of("x", "x", 30), of("other", "other", 50)}, 64, 8);
  EXPECT_EQ(missed.state, ClaimState::kMissed);
  EXPECT_THAT(missed.reason, HasSubstr("+20.0 % to +30.0 %"));
  EXPECT_THAT(missed.reason, HasSubstr("other would reach it, with +50.0 %"));
  EXPECT_EQ(HeadlineClaim({SensitivityCase()}, 64, 8).state, ClaimState::kNotMade);
}

TEST_F(GridTablesTest, SensitivityBeginsWithTheDefaults) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<SensitivityCase> cases,
                               MegatronSensitivity(grid_, 16, 16, Recompute::kFull));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const BatchSweep sweep,
      SweepBatches(grid_, {16, {16}, PublishedMethods(), {Recompute::kFull}}));
  ASSERT_TRUE(cases[0].Gain().has_value());
  EXPECT_EQ(cases[0].unknown, "");
  EXPECT_EQ(cases[0].megatron->step_time, sweep.Find(kMegatron, 16)->step_time);
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const BatchSweep blocks,
      SweepBatches(grid_, {16, {16}, PublishedMethods(), {Recompute::kBlocks}}));
  EXPECT_EQ(cases.back().megatron->step_time, blocks.Find(kMegatron, 16)->step_time);
  EXPECT_NE(cases.back().megatron->step_time, cases[0].megatron->step_time);
  EXPECT_LT(cases[1].megatron->step_time, cases[2].megatron->step_time) << "20 and 100 us";
  EXPECT_THAT(SensitivityTable(cases).status(), IsOk());
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
