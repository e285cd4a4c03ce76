#include "experiments/modern/modern_rows.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr char kHeader[] =
    "id,tag,system,gpu,gpus,precision,model,seq,gbs,mbs,tp,pp,cp,ep,vp,fsdp,recompute,tokens_per_s_"
    "per_"
    "gpu,"
    "step_s,notes,kernels,tflops_per_gpu\n";

TEST(ModernRows, ByHand) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const std::vector<ModernRow> rows,
      ParseModernRows(
          absl::StrCat(kHeader,
                       "a-1,read,NeMo,H100,64,BF16,llama,4096,256,1,2,4,1,,3,zero1,none,100,,"
                       "\"DP=8; peak memory 24.5 GB; more\",cpu_offloading=40,\n"
                       "b,read,,B200,8,FP8,llama,,,,,,,,,,,,2.5,,,800.5\n"),
          "rows.csv"));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].group, "a");
  EXPECT_EQ(rows[0].system, "NeMo");
  EXPECT_EQ(rows[0].line, 2);
  EXPECT_EQ(rows[0].tensor, 2);
  EXPECT_EQ(rows[0].virtual_stages, 3);
  EXPECT_EQ(rows[0].kernels, "cpu_offloading=40");
  EXPECT_EQ(rows[0].expert, 1);  // not printed
  EXPECT_DOUBLE_EQ(*rows[0].Seconds(), 4096.0 * 256 / (100 * 64));
  EXPECT_DOUBLE_EQ(*rows[0].peak_gib, 24.5);
  EXPECT_EQ(rows[1].batch, 0);
  EXPECT_DOUBLE_EQ(*rows[1].Seconds(), 2.5);
  EXPECT_DOUBLE_EQ(*rows[1].tflops, 800.5);
  EXPECT_FALSE(rows[0].tflops.has_value());
  EXPECT_FALSE(rows[1].peak_gib.has_value());
}

TEST(ModernRows, ErrorsNameLineAndColumn) {
  const auto message = [](const std::string& row) {
    return std::string(ParseModernRows(absl::StrCat(kHeader, row), "r.csv").status().message());
  };
  EXPECT_EQ(message("a,read,,H100,x,BF16,m,1,1,1,1,1,1,1,1,,,1,,,,\n"),
            "r.csv: line 2: gpus: \"x\": must be a whole number");
  EXPECT_EQ(message("a,read,,H100,8,BF16,m,1,1,1,1,1,1,1,1,,,-3,,,,\n"),
            "r.csv: line 2: tokens_per_s_per_gpu: \"-3\": must be a number above 0");
  EXPECT_THAT(message("a,H100\n"), HasSubstr("r.csv"));
  EXPECT_THAT(std::string(ParseModernRows("id\n", "r.csv").status().message()), HasSubstr("tag"));
}

TEST(ModernModels, ByHand) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const std::vector<ModernModel> models,
      ParseModernModels("id,layers,hidden,heads,kv_heads,head_dim,ffn,vocab,experts,"
                        "experts_per_token,shared_experts,moe_ffn,dense_layers,tie_embeddings,"
                        "attention\n"
                        "llama,4,64,8,2,8,96,1000,,,,,,yes,gqa swiglu\n"
                        "moe,4,64,8,2,8,96,1000,16,2,1,32,1,no,gqa swiglu\n",
                        "m.csv"));
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].kv_heads, 2);
  EXPECT_EQ(models[0].experts, 0);
  EXPECT_TRUE(models[0].tied);
  EXPECT_EQ(models[1].experts, 16);
  EXPECT_EQ(models[1].chosen_experts, 2);
  EXPECT_EQ(models[1].shared_experts, 1);
  EXPECT_EQ(models[1].expert_width, 32);
  EXPECT_EQ(models[1].dense_layers, 1);
}

}  // namespace
}  // namespace pipelab
