#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/recipes/megatron_flags.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kModel[] =
    "--num-layers 8 --hidden-size 256 --ffn-hidden-size 512 --num-attention-heads 4 --seq-length "
    "512 --max-position-embeddings 512 --position-embedding-type rope --normalization RMSNorm "
    "--swiglu --disable-bias-linear --untie-embeddings-and-output-weights --hidden-dropout 0 "
    "--attention-dropout 0 --vocab-size 1024 --micro-batch-size 1 --global-batch-size 16 "
    "--num-experts 8 --moe-router-topk 2 --expert-model-parallel-size 8 --bf16 ";

absl::StatusOr<Recipe> Read(const std::string& more) {
  return ReadMegatronFlags(absl::StrCat(kModel, more), "f", /*devices=*/8);
}

std::string Written(const Recipe& recipe) {
  const absl::StatusOr<Settings> settings = MegatronSettings(recipe);
  return settings.ok() ? settings->Text() : std::string(settings.status().message());
}

TEST(MegatronLaunches, AreReadAndWritten) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r,
                               Read("--cuda-graph-impl transformer_engine --cuda-graph-scope attn "
                                    "moe_router moe_preprocess --moe-router-fusion"));
  EXPECT_TRUE(r.kernels.graphed_attention && r.kernels.graphed_routers && r.kernels.fused_routers);
  EXPECT_FALSE(r.kernels.graphed_experts || r.kernels.graphed_feed_forward);
  EXPECT_THAT(Written(r), HasSubstr("--moe-router-fusion\n--cuda-graph-impl transformer_engine\n"
                                    "--cuda-graph-scope attn moe_router\n"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe plain, Read(""));
  EXPECT_THAT(Written(plain), Not(HasSubstr("graph")));
}

TEST(MegatronLaunches, DeterministicModeFillsOutputs) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, Read("--deterministic-mode"));
  EXPECT_TRUE(r.kernels.filled_outputs);
  EXPECT_THAT(Written(r), HasSubstr("--deterministic-mode\n"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe plain, Read(""));
  EXPECT_FALSE(plain.kernels.filled_outputs);
}

TEST(MegatronLaunches, GraphsWithoutScopeAreOfWholeLayers) {
  for (const char* words :
       {"--enable-cuda-graph", "--external-cuda-graph", "--cuda-graph-impl local",
        "--cuda-graph-impl local "
        "--cuda-graph-scope full"}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, Read(words));
    EXPECT_TRUE(r.kernels.graphed_attention && r.kernels.graphed_experts) << words;
    EXPECT_FALSE(r.kernels.graphed_step) << words;
  }
  for (const char* words : {"--cuda-graph-impl full_iteration",
                            "--cuda-graph-impl local --cuda-graph-scope full_iteration"}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, Read(words));
    EXPECT_TRUE(r.kernels.graphed_step) << words;
    EXPECT_THAT(Written(r), HasSubstr("--cuda-graph-scope full_iteration\n"));
  }
}

// The kernels that make them one with their products cast to fp8.
TEST(MegatronLaunches, ExpertsAreFusedUnderFp8) {
  const std::string fuser = "--use-transformer-engine-op-fuser ";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe half, Read(fuser));
  EXPECT_FALSE(half.kernels.fused_experts);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, Read(fuser + "--fp8-format e4m3"));
  EXPECT_TRUE(r.kernels.fused_experts);
  EXPECT_THAT(Written(r), HasSubstr(fuser.substr(0, fuser.size() - 1)));
}

// As Megatron-LM's transformer_config has it.
TEST(MegatronLaunches, OlderNamesStandForNone) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r, Read("--cuda-graph-impl none --enable-cuda-graph"));
  EXPECT_TRUE(r.kernels.graphed_attention);
  EXPECT_EQ(Read("--enable-cuda-graph --external-cuda-graph").status().message(),
            "f: --external-cuda-graph: cannot be used with --enable-cuda-graph; nearest: without "
            "--external-cuda-graph");
  EXPECT_EQ(Read("--cuda-graph-impl local --enable-cuda-graph").status().message(),
            "f: --enable-cuda-graph: cannot be used with --cuda-graph-impl local; nearest: without "
            "--enable-cuda-graph");
}

TEST(MegatronLaunches, WhatHasNoInfluenceIsListed) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Recipe r,
                               Read("--use-transformer-engine-op-fuser --cuda-graph-scope attn"));
  EXPECT_THAT(r.passed_over,
              testing::IsSupersetOf({"--use-transformer-engine-op-fuser", "--cuda-graph-scope"}));
}

TEST(MegatronLaunches, ErrorsNameTheWord) {
  EXPECT_EQ(
      Read("--moe-router-fusion false").status().message(),
      "f: --moe-router-fusion false: takes no value; nearest: --moe-router-fusion, or without it");
  EXPECT_EQ(Read("--use-distributed-optimizer False").status().message(),
            "f: --use-distributed-optimizer False: takes no value; nearest: "
            "--use-distributed-optimizer, or without it");
  EXPECT_THAT(std::string(Read("--cuda-graph-scope bogus").status().message()),
              HasSubstr("\"bogus\" is no module"));
  EXPECT_EQ(Read("--cuda-graph-impl local --cuda-graph-scope attn moe_rooter").status().message(),
            "f: --cuda-graph-scope attn moe_rooter: \"moe_rooter\" is no module; nearest: attn, "
            "mlp, moe, moe_router, moe_preprocess, mamba, full or full_iteration");
  EXPECT_THAT(std::string(Read("--cuda-graph-impl jit").status().message()),
              HasSubstr("--cuda-graph-impl jit: must be none, local, transformer_engine"));
}

}  // namespace
}  // namespace pipelab
