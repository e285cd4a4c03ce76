#include "experiments/modern/mlperf_rows.h"

#include <string>
#include <vector>

#include "experiments/modern/modern_machines.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr char kRows[] =
    "version,org,system,bench,gpu,gpus,tp,pp,vp,cp,M,gbs,seq,precision,steps,median_step_s,p10,"
    "p90\n"
    "v5.0,A,one,llama31_405b,GB200,512,4,8,8,2,112.0,896,8192,fp8,954,19.3147,19.1,19.4\n"
    "v5.0,A,two,llama31_405b,GB200,1536,4,8,8,2,48.0,1152,8192,fp8,779,8.5046,8.4,8.5\n";

ModernModel Llama405b() {
  ModernModel m;
  m.id = "llama3.1-405b";
  m.layers = 126;
  m.hidden = 16384;
  m.heads = m.head_size = 128;
  m.kv_heads = 8;
  m.feed_forward = 53248;
  m.vocabulary = 128256;
  m.attention = "gqa swiglu";
  return m;
}

TEST(MlperfRows, AreStepsWithTheirMicroBatches) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<ModernRow> rows, ParseMlperfRows(kRows, "m.csv"));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].group, "mlperf");
  EXPECT_EQ(*rows[1].Seconds(), 8.5046);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModernMachines machines, LoadModernMachines());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<MlperfStep> steps,
                               PredictMlperf(rows, {Llama405b()}, machines));
  EXPECT_EQ(steps[0].micro_batches, 112);
  EXPECT_EQ(steps[1].micro_batches, 48);
  EXPECT_LT(steps[1].seconds, steps[0].seconds);
  EXPECT_THAT(MlperfTable(steps).status(), IsOk());
  EXPECT_THAT(MlperfLineTable(steps).status(), IsOk());
  for (const Claim& claim : MlperfClaims(steps)) EXPECT_THAT(CheckClaim(claim), IsOk()) << claim.id;
}

TEST(MlperfRows, ALineThroughTheRows) {
  std::vector<MlperfStep> steps(3);
  for (int i = 0; i < 3; ++i) {
    steps[i].row.gpu = "H100";
    steps[i].micro_batches = 10 * (i + 1);
    steps[i].row.step_seconds = 1 + 0.5 * steps[i].micro_batches;
    steps[i].seconds = 1 + 0.51 * steps[i].micro_batches;
  }
  const std::vector<Claim> claims = MlperfClaims(steps);
  ASSERT_EQ(claims.size(), 3u);
  EXPECT_NEAR(*claims[1].value, 2, 1e-9);  // 0.51 for 0.5
  EXPECT_EQ(claims[1].state, ClaimState::kMet);
  steps[2].seconds *= 1.2;
  EXPECT_EQ(MlperfClaims(steps)[1].state, ClaimState::kMissed);
  EXPECT_EQ(MlperfClaims({})[0].state, ClaimState::kNotMade);
}

TEST(MlperfRows, FaultsNameTheLine) {
  const std::string bad =
      std::string(kRows) + "v5.0,A,x,b,H100,x,8,8,8,2,24,1536,8192,fp8,1,5,5,5\n";
  EXPECT_THAT(std::string(ParseMlperfRows(bad, "m.csv").status().message()),
              testing::HasSubstr("m.csv: line 4: gpus: \"x\""));
}

}  // namespace
}  // namespace pipelab
