#include "pipelines/recipes/yaml_options.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/recipes/megatron_flags.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string YamlAsFlags(absl::string_view text) {
  EXPECT_TRUE(IsYaml(text)) << text;
  const auto options = ParseYamlOptions(text, "f.yaml");
  if (!options.ok()) return std::string(options.status().message());
  std::string flags;
  for (const ShellOption& o : *options) {
    absl::StrAppend(&flags, flags.empty() ? "" : " ", o.name, o.values.empty() ? "" : "=",
                    absl::StrJoin(o.values, "|"));
  }
  return flags;
}

TEST(IsYaml, IsNoCommandLineAndNoScript) {
  for (const char* yes :
       {"MODEL_ARGS:\n  --num-layers: 8", "# a run\n---\nnum_layers: 8 # blocks\n",
        "--num-layers: 8\n--bf16: true"}) {
    EXPECT_TRUE(IsYaml(yes)) << yes;
  }
  for (const char* no :
       {"", "--num-layers 8", "TP=8\ntorchrun --nnodes 2", "case $1 in\n a) N=1;;\nesac",
        "export A=http://b:80", "- a: b", "# key: value", "num_layers: 8\ntrain.py"}) {
    EXPECT_FALSE(IsYaml(no)) << no;
  }
}

TEST(ParseYamlOptions, OfModelArguments) {
  EXPECT_EQ(YamlAsFlags("ENV_VARS:\n  A: 1\n  B:\n    C: |\n      --x: 2\nTEST_TYPE: regular\n"
                        "MODEL_ARGS:\n  # sizes\n  --num-layers: 8  # of all\n  --bf16: true\n"
                        "  --swiglu: True\n  --fp16: false\n  --moe-layer-freq: ([0]*3+[1]*58)\n"
                        "  --window-size: \"(127, 0)\"\n  --rampup-batch-size: 16 16 1000\n"
                        "  --lr: 1e-4\n  --data-path: '${DATA}/a #1'\nMETRICS:\n  - \"a: b\"\n"),
            "--num-layers=8 --bf16 --swiglu --moe-layer-freq=([0]*3+[1]*58) --window-size=(127, 0) "
            "--rampup-batch-size=16|16|1000 --lr=1e-4 --data-path=${DATA}/a #1");
  EXPECT_EQ(YamlAsFlags("--num-layers: 8\n--recompute-modules: [mlp, layernorm]\n"),
            "--num-layers=8 --recompute-modules=mlp|layernorm");
  EXPECT_EQ(YamlAsFlags("model:\n  cuda_graph_scope: [attn, moe_router]\n"),
            "--cuda-graph-scope=attn|moe_router");
  EXPECT_EQ(YamlAsFlags("MODEL_ARGS:\n  --recompute-modules: \"mlp moe_act\"\n"),
            "--recompute-modules=mlp|moe_act");
}

TEST(ParseYamlOptions, OfMegatronBridge) {
  EXPECT_EQ(YamlAsFlags("model:\n  tensor_model_parallel_size: 4\n  num_moe_experts: 8\n"
                        "  virtual_pipeline_model_parallel_size: null\n  num_query_groups: 2\n"
                        "  gated_linear_unit: true\n  add_bias_linear: false\n"
                        "  share_embeddings_and_output_weights: true\n  recompute_modules:\n"
                        "    - mlp\n    - core_attn\n  seq_length: 4096\ntrain:\n"
                        "    global_batch_size: 32\nmixed_precision: bf16_mixed\n"),
            "--tensor-model-parallel-size=4 --num-experts=8 --group-query-attention "
            "--num-query-groups=2 --swiglu --disable-bias-linear --recompute-modules=mlp|core_attn "
            "--seq-length=4096 --global-batch-size=32 --bf16 --max-position-embeddings=4096");
  EXPECT_EQ(YamlAsFlags("model:\n  gated_linear_unit: false\n  add_bias_linear: true\n"
                        "  virtual_pipeline_model_parallel_size: 2"),
            "--num-virtual-stages-per-pipeline-rank=2");
}

TEST(ParseYamlOptions, RefusesOtherYamlWithItsLine) {
  EXPECT_EQ(YamlAsFlags("model:\n  a: 1\n  b:\n    c: 2\n"),
            "f.yaml:3: b:: has no value; must be true, or left out");
  EXPECT_EQ(YamlAsFlags("model:\n  a: 1\n    c: 2\n"),
            "f.yaml:3: c: 2: must be a key of its section; deeper ones are not read");
  EXPECT_THAT(YamlAsFlags("model:\n  layout:\n    - [t, t]\n"), HasSubstr("f.yaml:3: - [t, t]"));
  EXPECT_THAT(YamlAsFlags("model:\n  a: &x 1\n"), HasSubstr("f.yaml:2: a: &x 1: must be words"));
  EXPECT_THAT(YamlAsFlags("model:\n  a: |\n"), HasSubstr("must be words"));
  EXPECT_THAT(YamlAsFlags("model:\n  a: {b: 1}\n"), HasSubstr("must be words"));
}

TEST(ReadMegatronFlags, ReadsYaml) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe r,
      ReadMegatronFlags("MODEL_ARGS:\n  --num-layers: 8\n  --hidden-size: 1024\n"
                        "  --num-attention-heads: 16\n  --seq-length: 512\n  --bf16: true\n"
                        "  --max-position-embeddings: 512\n  --vocab-size: 1000\n"
                        "  --micro-batch-size: 1\n  --global-batch-size: 32\n  --new-thing: 1\n",
                        "f.yaml", 4));
  EXPECT_EQ(r.model.layers, 8);
  EXPECT_EQ(r.type, NumberType::kBf16);
  EXPECT_EQ(r.config.micro_batches, 8);
  EXPECT_THAT(r.unknown, ElementsAre("--new-thing 1: unknown"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Recipe bridge,
      ReadMegatronFlags("model:\n  num_layers: 8\n  hidden_size: 1024\n  num_attention_heads: 16\n"
                        "  seq_length: 512\n  vocab_size: 1000\n  gated_linear_unit: true\n"
                        "  tensor_model_parallel_size: 2\ntrain:\n  micro_batch_size: 1\n"
                        "  global_batch_size: 32\n",
                        "f.yaml", 4));
  EXPECT_EQ(bridge.config.tensor, 2);
  EXPECT_EQ(bridge.model.feed_forward_kind, FeedForwardKind::kSwiGlu);
  EXPECT_EQ(
      ReadMegatronFlags("MODEL_ARGS:\n  --num-layers: 8\n  --hidden-size: 1024\n", "f.yaml", 4)
          .status()
          .message(),
      "f.yaml: --num-attention-heads: missing");
}

}  // namespace
}  // namespace pipelab
