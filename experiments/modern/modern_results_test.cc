// The published rows beside predictions: what docs/modern_models.md says of them.
#include "experiments/modern/modern_results.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "experiments/modern/layout_groups.h"
#include "experiments/modern/measured_layouts.h"
#include "experiments/modern/modern_calibration.h"
#include "experiments/modern/modern_claims.h"
#include "experiments/modern/modern_machines.h"
#include "experiments/modern/modern_repeats.h"
#include "experiments/modern/modern_switches.h"
#include "experiments/modern/modern_tables.h"
#include "experiments/modern/step_parts.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/kernel_rates.h"
#include "tools/base/file.h"
#include "tools/base/shared_data.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(ModernResults, OfThePublishedRows) {
  const std::string folder = SharedDataFolder("measured");
  if (folder.empty()) GTEST_SKIP() << NoSharedData("measured");
  if (!ReadFile(folder + "/modern_training_rows.csv").ok()) {
    GTEST_SKIP() << "measured: no modern_training_rows.csv";
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModernData data, LoadModernData(folder));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModernMachines machines, LoadModernMachines());
  EXPECT_EQ(data.rows.size(), 1857u);
  const std::vector<ModernResult> all = PredictAll(data, machines);
  int64_t predicted = 0, fit = 0, largest = 0, near = 0;
  for (const ModernResult& r : all) {
    if (!r.why_not.empty()) continue;
    ++predicted;
    fit += r.memory <= r.device_memory;
    if (r.row->model != "mpt-70b") continue;
    ++largest;
    near += std::abs(r.seconds / *r.row->Seconds() - 1) < 0.1;
  }
  EXPECT_GE(predicted, 1650);
  EXPECT_GE(fit, 1550);
  EXPECT_EQ(largest, 9);
  EXPECT_GE(near, 6);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const double best, BestSustained(data.rows, data.models, machines));
  for (const auto& [gpu, cluster] : machines.by_gpu) {
    if (cluster.device.rates == nullptr) continue;
    EXPECT_EQ(cluster.device.rates->sustained->value, best) << gpu;
  }
  for (const Table& table :
       {CoverageTable(all), ErrorTable(all), MemoryTable(all), SwitchTable(all), TooLargeTable(all),
        RepeatTable(all), AssumedTable(all)}) {
    EXPECT_THAT(table.status(), IsOk()) << table.id();
  }
  for (const Claim& claim : ModernClaims(all)) EXPECT_THAT(CheckClaim(claim), IsOk()) << claim.id;
}

// A layout measured twice counts once, with its fastest run; of equal predictions the slowest is
// taken; two layouts are no group.
TEST(GroupsOf, TakesTheLayoutPredictedFastest) {
  const int64_t tensor[] = {1, 1, 2, 4, 8, 1, 2};
  const double measured[] = {3, 2, 2.05, 2.4, 5, 1, 2};
  const double predicted[] = {1.5, 1.5, 1, 1, 4, 2, 1};
  std::vector<MeasuredLayout> runs(7);
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].source = "mbridge";
    runs[i].request = i < 5 ? "llama3-8b" : "llama3-70b";
    runs[i].layout = runs[i].words = absl::StrCat("T", tensor[i]);
    runs[i].measured = measured[i];
    runs[i].predicted = predicted[i];
    runs[i].parts = [i] { return std::vector<StepPart>{{"bubble", i == 1 ? 2.0 : 1.0}}; };
  }
  std::vector<LayoutGroup> groups = GroupsOf(runs);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].layouts, 4);
  EXPECT_EQ(groups[0].best, &runs[1]);
  EXPECT_EQ(groups[0].first, &runs[3]);
  EXPECT_NEAR(groups[0].lost(), 0.2, 1e-12);
  EXPECT_FALSE(groups[0].near());
  ASSERT_THAT(ExplainMisses(&groups), IsOk());
  EXPECT_EQ(groups[0].component, "bubble");
  EXPECT_THAT(CheckClaim(GroupClaim(groups)), IsOk());
  EXPECT_THAT(CheckClaim(GroupClaim({})), IsOk());
  EXPECT_THAT(MissTable(groups).status(), IsOk());
  EXPECT_THAT(GroupTable(groups).status(), IsOk());
  runs[3].measured = 2.05;
  EXPECT_TRUE(GroupsOf(runs)[0].near());
  // A layout that a search leaves out is not taken, unless it leaves out all.
  for (const size_t out : {2, 3}) runs[out].listed = false;
  EXPECT_EQ(GroupsOf(runs)[0].first, &runs[1]);
  for (MeasuredLayout& run : runs) run.listed = false;
  EXPECT_EQ(GroupsOf(runs)[0].first, &runs[2]);
}

// Rows of one configuration are runs of one layout, whatever they print of it; a model with a head
// for a further token is another.
TEST(ModernLayouts, AreConfigurations) {
  std::vector<ModernRow> rows(4);
  ModernResults all(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].group = "mbridge";
    rows[i].sharding = i % 2 == 0 ? "" : "0";
    rows[i].step_seconds = 1;
    all[i].row = &rows[i];
    all[i].configuration = i < 2 ? "1f1b:P=2" : "1f1b:P=4";
    all[i].further = i == 3;
  }
  const std::vector<MeasuredLayout> runs = ModernLayouts(ModernData(), ModernMachines(), all);
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[0].layout, runs[1].layout);
  EXPECT_NE(runs[0].layout, runs[2].layout);
  EXPECT_EQ(runs[0].request, runs[2].request);
  EXPECT_NE(runs[2].request, runs[3].request);
}

// Two thirds of the file: the others calibrated the machine.
TEST(NodeLayouts, HaveNoCalibratingRow) {
  const std::string folder = SharedDataFolder("measured");
  if (folder.empty()) GTEST_SKIP() << NoSharedData("measured");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<MeasuredLayout> runs, NodeLayouts(folder));
  if (runs.empty()) GTEST_SKIP() << "measured: no a100_gpt_iteration_times.csv";
  EXPECT_EQ(runs.size(), 708u * 2 / 3);
  EXPECT_EQ(runs[0].words, "T1 P4 D2 b1");
  EXPECT_NEAR(runs[0].predicted / runs[0].measured, 1, 0.05);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<StepPart> parts, runs[0].parts());
  double sum = 0;
  for (const StepPart& part : parts) sum += part.seconds;
  EXPECT_NEAR(sum, runs[0].predicted, 1e-6 * sum);
}

TEST(MostLost, IsThePartWithMore) {
  const std::vector<StepPart> slow = {{"bubble", 2}, {"compute", 5}};
  EXPECT_EQ(MostLost(slow, {{"bubble", 1}, {"compute", 4.5}}).name, "bubble");
  EXPECT_EQ(MostLost(slow, {{"bubble", 2}, {"compute", 4.5}}).seconds, 0.5);
  EXPECT_EQ(MostLost(slow, slow).name, "");
}

TEST(SwitchesOf, PairsOfAnExperiment) {
  std::vector<ModernRow> rows(4);
  rows[0].id = "mbridge-ab-moonlight-moe_act";
  rows[1].id = "mbridge-ab-moonlight-none";
  rows[2].id = "mbridge-ab-moonlight-core_attn";
  rows[3].id = "mbridge-ab-qwen3-30b-hybridep-overlap-on";  // whose other run is not there
  std::vector<ModernResult> all(4);
  for (int i = 0; i < 4; ++i) {
    rows[i].step_seconds = 1.0 + i;
    all[i].row = &rows[i];
    all[i].seconds = i == 2 ? 5 : 4;
  }
  const std::vector<ModernSwitch> switches = SwitchesOf(all);
  ASSERT_EQ(switches.size(), 2u);
  EXPECT_EQ(switches[0].after, &all[0]);
  EXPECT_EQ(switches[0].before, &all[1]);
  EXPECT_DOUBLE_EQ(switches[0].measured(), -0.5);
  EXPECT_FALSE(switches[0].right());  // predicted to change nothing
  EXPECT_DOUBLE_EQ(switches[1].measured(), 0.5);
  EXPECT_DOUBLE_EQ(switches[1].predicted(), 0.25);
  EXPECT_TRUE(switches[1].right());
  all[1].why_not = "Mamba layers";
  EXPECT_TRUE(SwitchesOf(all).empty());
}

// Three layouts, of which the last ran once.
TEST(RepeatsOf, LayoutsWithBothStages) {
  std::vector<ModernRow> rows(5);
  std::vector<ModernResult> all(5);
  const double seconds[] = {1, 4, 10, 11, 3};
  for (int i = 0; i < 5; ++i) {
    rows[i].sharding = i % 2 == 0 ? "zero0" : "zero1";
    rows[i].pipeline = 1 + i / 2;
    rows[i].step_seconds = seconds[i];
    all[i].row = &rows[i];
    all[i].seconds = i == 3 ? 6 : 5;
  }
  const auto every = [](const ModernResult&) { return true; };
  const ModernRepeats r = RepeatsOf(all, every);
  EXPECT_EQ(r.layouts, 2);
  EXPECT_EQ(r.apart, 1);
  EXPECT_DOUBLE_EQ(r.median_ratio, (4 + 1.1) / 2);
  EXPECT_DOUBLE_EQ(r.largest_ratio, 4);
  EXPECT_DOUBLE_EQ(r.largest_predicted, 1.2);
  EXPECT_DOUBLE_EQ(r.best_share(), 0.75);
  // Ranks 1 2 3 4 against 1.5 1.5 3.5 3.5.
  EXPECT_NEAR(r.best_rank, 4 / std::sqrt(20.0), 1e-12);
  all[1].assumed = true;  // not judged
  EXPECT_EQ(RepeatsOf(all, every).layouts, 1);
  EXPECT_EQ(RepeatsOf({}, every).best_share(), 0);
}

TEST(ModernResults, WithoutRowsNoClaimIsMade) {
  for (const Claim& claim : ModernClaims({})) {
    EXPECT_EQ(claim.state, ClaimState::kNotMade) << claim.id;
  }
  EXPECT_THAT(ErrorTable({}).status(), IsOk());
  EXPECT_THAT(RepeatTable({}).status(), IsOk());
}

}  // namespace
}  // namespace pipelab
