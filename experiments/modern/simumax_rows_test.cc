#include "experiments/modern/simumax_rows.h"

#include <string>
#include <utility>
#include <vector>

#include "experiments/modern/modern_machines.h"
#include "experiments/modern/modern_results.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/kernel_rates.h"
#include "pipelines/step/megatron_graph.h"
#include "tools/base/file.h"
#include "tools/base/shared_data.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr char kSimumaxHeader[] = "case,measured_ms,measured_peak_gib\n";

ModernModel SimumaxLlama70b() {
  ModernModel m;
  m.id = "llama3-70b";
  m.layers = 80;
  m.hidden = 8192;
  m.heads = 64;
  m.kv_heads = 8;
  m.head_size = 128;
  m.feed_forward = 28672;
  m.vocabulary = 128256;
  m.attention = "gqa swiglu";
  return m;
}

TEST(SimumaxRows, NamesSayTheLayout) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const SimumaxRows rows,
      ParseSimumaxRows(std::string(kSimumaxHeader) +
                           "deepseekv2_tp1_ep4_pp2_dp4_l4_mbc32_cef,1727.7,44.7\n"
                           "llama3_70b_l12_tp2_cp4_pp1_dp1_seq131072_mbc4_cef,11315.7,112.67\n"
                           "llama3_70b_tp2_pp1_dp4_l12_mbc32_cef,5376.5,60.68\n",
                       "s.csv", {SimumaxLlama70b()}));
  EXPECT_EQ(rows.with_experts, 1);
  ASSERT_EQ(rows.rows.size(), 2u);
  ASSERT_EQ(rows.models.size(), 1u);
  EXPECT_EQ(rows.models[0].layers, 12);
  EXPECT_EQ(rows.models[0].vocabulary, 128256);
  const ModernRow& wide = rows.rows[0];
  EXPECT_EQ(wide.gpus, 8);
  EXPECT_EQ(wide.tensor, 2);
  EXPECT_EQ(wide.context, 4);
  EXPECT_TRUE(wide.exchanges_heads);
  EXPECT_TRUE(wide.loss_in_place);
  EXPECT_FALSE(rows.rows[1].exchanges_heads);
  EXPECT_EQ(wide.tokens, 131072);
  EXPECT_EQ(wide.batch, 4);
  EXPECT_EQ(rows.rows[1].tokens, 4096);
  EXPECT_EQ(rows.rows[1].batch, 128);
  EXPECT_DOUBLE_EQ(*rows.rows[1].Seconds(), 5.3765);
  EXPECT_DOUBLE_EQ(*rows.rows[1].peak_gib, 60.68);
}

TEST(SimumaxRows, ErrorsNameTheLineAndTheColumn) {
  const auto message = [](const std::string& row) {
    return std::string(
        ParseSimumaxRows(kSimumaxHeader + row, "s.csv", {SimumaxLlama70b()}).status().message());
  };
  EXPECT_EQ(message("gpt_l4_tp1,1,1\n"),
            "s.csv: line 2: case: \"gpt_l4_tp1\": must begin with llama3_70b, llama3_405b or "
            "deepseek");
  EXPECT_EQ(message("llama3_70b_l4_tp1,-1,1\n"),
            "s.csv: line 2: measured_ms: \"-1\": must be a number above 0");
  EXPECT_EQ(message("llama3_70b_l4_tp0,1,1\n"),
            "s.csv: line 2: case: \"llama3_70b_l4_tp0\": tp must be from 1 to 4096");
  EXPECT_EQ(message("llama3_405b_l4_tp1,1,1\n"),
            "s.csv: line 2: case: \"llama3_405b_l4_tp1\": there is no model llama3.1-405b-dgxc");
}

TEST(SimumaxRows, AreStepsOfB200s) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const SimumaxRows rows,
      ParseSimumaxRows(std::string(kSimumaxHeader) +
                           "llama3_70b_l12_tp8_pp1_dp1_mbc4_cef,280.9,28.29\n"
                           "llama3_70b_l12_tp8_pp1_dp1_mbc8_cef,561.8,28.29\n",
                       "s.csv", {SimumaxLlama70b()}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModernMachines machines, LoadModernMachines());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<RowStep> steps, PredictSimumax(rows, machines));
  ASSERT_EQ(steps.size(), 2u);
  for (const RowStep& s : steps) {
    EXPECT_LT(s.least, s.seconds);
    EXPECT_LT(s.seconds, s.most);
  }
  EXPECT_LT(steps[0].seconds, steps[1].seconds);
  EXPECT_DOUBLE_EQ(steps[0].gib, steps[1].gib);
  EXPECT_THAT(SimumaxTable(steps).status(), IsOk());
  for (const Claim& c : SimumaxClaims(steps)) EXPECT_THAT(CheckClaim(c), IsOk()) << c.id;
  for (const Claim& c : SimumaxClaims({})) EXPECT_EQ(c.state, ClaimState::kNotMade) << c.id;
  EXPECT_THAT(SimumaxOwnTable(steps).status(), IsOk());
  EXPECT_THAT(CheckClaim(SimumaxOwnTableClaim(steps)), IsOk());
  EXPECT_EQ(SimumaxOwnTableClaim({}).state, ClaimState::kNotMade);
}

TEST(SimumaxRows, EachRankHasAMultipleOf128Words) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const SimumaxRows rows,
      ParseSimumaxRows(std::string(kSimumaxHeader) + "llama3_70b_l12_tp8_mbc4,280.9,28.29\n",
                       "s.csv", {SimumaxLlama70b()}));
  EXPECT_EQ(rows.models[0].vocabulary, 8 * 16128);
}

// The file has all shapes that its authors' rows ask for, so a shape that is not found was read or
// made otherwise.
TEST(SimumaxRows, TheirOwnTableHasEveryProductAndAttention) {
  const std::string folder = SharedDataFolder("measured");
  const absl::StatusOr<ClusterSpec> own =
      LoadCluster("", JoinPath(folder, "simumax_b200_system.json"));
  if (!own.ok()) GTEST_SKIP() << NoSharedData("measured");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModernData data, LoadModernData(folder));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string text,
                               ReadFile(JoinPath(folder, "simumax_b200_rows.csv")));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SimumaxRows rows,
                               ParseSimumaxRows(text, "s.csv", data.models));
  ModernMachines machines;
  machines.by_gpu["B200"] = *own;
  int found = 0;
  for (const ModernRow& row : rows.rows) {
    SCOPED_TRACE(row.id);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ModernStep step, StepOfRow(row, rows.models, machines));
    PIPELAB_ASSERT_OK_AND_ASSIGN(ModelGraph graph, BuildGpt(step.model));
    graph = MegatronGraph(std::move(graph), AttentionImplementation::kFused, step.type);
    for (const LayerSpec& layer : graph.layers) {
      const LayerOperations ops =
          layer.split.operations(/*samples=*/1, TokenSlice(), step.config.split());
      for (const auto* pass : {&ops.forward, &ops.backward_input, &ops.backward_weight}) {
        for (const Operation& o : *pass) {
          if (!HasProducts(o.kind)) continue;
          EXPECT_TRUE(own->device.rates->FindShapes(o.kind, step.type)->Has(o))
              << layer.name << ": " << o.m << " x " << o.n << " x " << o.k;
          ++found;
        }
      }
    }
  }
  EXPECT_GT(found, 1000);
}

}  // namespace
}  // namespace pipelab
