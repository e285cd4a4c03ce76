// Types whose files are told by sizes counted here by hand, and files that hold a text model among
// others.
#include "models/files/hugging_face_wrappers.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/files/model_file.h"
#include "models/graph/layer_spec.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kLength = 64;

absl::StatusOr<ModelGraph> Read(const std::string& config, int64_t tokens = kLength) {
  ModelFileOptions options;
  options.tokens = tokens;
  return ParseModel(config, "c.json", "c", options);
}

int64_t CountOf(const std::string& config) {
  const absl::StatusOr<ModelGraph> graph = Read(config);
  EXPECT_THAT(graph, IsOk());
  return graph.ok() ? graph->num_parameters() : 0;
}

std::string Refusal(const std::string& config, int64_t tokens = kLength) {
  const absl::StatusOr<ModelGraph> graph = Read(config, tokens);
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument) << config;
  return std::string(graph.status().message());
}

// "1" for each block with experts, "0" for others.
std::string BlocksWithExperts(const std::string& config) {
  std::string blocks;
  const absl::StatusOr<ModelGraph> graph = Read(config);
  EXPECT_THAT(graph, IsOk());
  for (const LayerSpec& layer : graph.ok() ? graph->layers : std::vector<LayerSpec>()) {
    if (layer.kind == "gpt_mlp" || layer.kind == "gpt_experts") {
      blocks += layer.kind == "gpt_mlp" ? '0' : '1';
    }
  }
  return blocks;
}

std::string Llama4(const std::string& more) {
  return absl::StrCat(R"({"model_type": "llama4_text", "hidden_size": 1024, "head_dim": 128,
      "intermediate_size": 2048, "intermediate_size_mlp": 4096, "num_hidden_layers": 4,
      "num_attention_heads": 8, "num_key_value_heads": 2, "num_local_experts": 8,
      "num_experts_per_tok": 1, "vocab_size": 32000, "max_position_embeddings": 65536)",
                      more, "}");
}

// Llama's without experts: norm, q, k, v and o; norm, gate, up and down; two tables and a norm.
int64_t Attention(int64_t hidden, int64_t head, int64_t heads, int64_t kv_heads) {
  return hidden + hidden * head * (heads + 2 * kv_heads) + heads * head * hidden;
}
int64_t Mlp(int64_t hidden, int64_t inner) { return hidden + 3 * hidden * inner; }
int64_t Tables(int64_t hidden, int64_t words, int tables = 2) {
  return tables * words * hidden + hidden;
}

TEST(HuggingFaceConfig, Llama4HasExpertsInSomeBlocks) {
  // A norm, the router, 8 experts and a shared one; blocks without them are wider.
  const int64_t experts = 1024 + 1024 * 8 + 9 * 3 * 1024 * 2048, dense = Mlp(1024, 4096);
  const int64_t rest = 4 * Attention(1024, 128, 8, 2) + Tables(1024, 32000);
  const std::string second = R"(, "interleave_moe_layer_step": 2)";
  EXPECT_EQ(CountOf(Llama4("")), rest + 4 * experts);
  EXPECT_EQ(CountOf(Llama4(second)), rest + 2 * experts + 2 * dense);
  EXPECT_EQ(BlocksWithExperts(Llama4(second)), "0101");
  EXPECT_EQ(BlocksWithExperts(Llama4(R"(, "interleave_moe_layer_step": 3)")), "0010");
  EXPECT_EQ(BlocksWithExperts(Llama4(R"(, "moe_layers": [0, 3])")), "1001");
  EXPECT_EQ(BlocksWithExperts(Llama4(R"(, "moe_layers": [])")), "0000");
  // Scout's and Maverick's text models: 48 blocks of 5120, 40 heads of 128, 8 of them for keys.
  const std::string scout = R"({"model_type": "llama4", "text_config": {"num_hidden_layers": 48}})";
  const int64_t large = 48 * Attention(5120, 128, 40, 8) + Tables(5120, 202048);
  EXPECT_EQ(CountOf(scout), large + 48 * (5120 + 5120 * 16 + 17 * 3 * 5120 * int64_t{8192}));
  const std::string maverick = absl::StrReplaceAll(
      scout, {{"48", R"(48, "num_local_experts": 128, "interleave_moe_layer_step": 2)"}});
  EXPECT_EQ(CountOf(maverick), large + 24 * (5120 + 5120 * 128 + 129 * 3 * 5120 * int64_t{8192}) +
                                   24 * Mlp(5120, 16384));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, Read(Llama4("")));
  EXPECT_EQ(Attribute(graph.layers[2], "sigmoid"), 1);
  EXPECT_EQ(Attribute(graph.layers[2], "normalized"), 0);
  EXPECT_EQ(Refusal(Llama4(R"(, "moe_layers": [4])")),
            "c.json: moe_layers: 4: must be a block, from 0 to 3");
  EXPECT_THAT(Refusal(Llama4(""), 8193),
              HasSubstr("attention_chunk_size: 8192: samples of 8193 tokens are longer, and no "
                        "layer attends within chunks; give at most @8192"));
  EXPECT_THAT(Read(Llama4(R"(, "attention_chunk_size": null)"), 8193), IsOk());
}

TEST(HuggingFaceConfig, OtherTypesHaveExpertsInSomeBlocks) {
  const std::string qwen =
      R"({"model_type": "qwen3_moe", "hidden_size": 64, "intermediate_size": 96, "head_dim": 16,
      "num_hidden_layers": 6, "num_attention_heads": 4, "num_experts": 4, "num_experts_per_tok": 2,
      "moe_intermediate_size": 32, "vocab_size": 100, "max_position_embeddings": 64MORE})";
  const auto blocks = [&](const char* more) {
    return BlocksWithExperts(absl::StrReplaceAll(qwen, {{"MORE", more}}));
  };
  EXPECT_EQ(blocks(""), "111111");
  EXPECT_EQ(blocks(R"(, "decoder_sparse_step": 2)"), "010101");
  EXPECT_EQ(blocks(R"(, "mlp_only_layers": [0, 4])"), "011101");
  EXPECT_EQ(blocks(R"(, "decoder_sparse_step": 3, "mlp_only_layers": [2])"), "000001");
}

TEST(HuggingFaceConfig, Phi3HasLlamasParameters) {
  // Phi-3 mini, whose published weights have 3,821,079,552.
  const std::string mini =
      R"({"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
      "vocab_size": 32064, "max_position_embeddings": 4096, "hidden_act": "silu",
      "sliding_window": 2047, "attention_bias": false, "rope_scaling": null})";
  EXPECT_EQ(CountOf(mini), 3821079552);
  EXPECT_EQ(CountOf(mini),
            32 * (Attention(3072, 96, 32, 32) + Mlp(3072, 8192)) + Tables(3072, 32064));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, Read(mini));
  EXPECT_EQ(Attribute(graph.layers[1], "window"), 2047);
  EXPECT_EQ(CountOf(absl::StrReplaceAll(mini, {{"3072", "1024"},
                                               {"8192", "4096"},
                                               {"layers\": 32", "layers\": 4"},
                                               {"heads\": 32", "heads\": 8"},
                                               {"32064", "32000"}})),
            4 * (Attention(1024, 128, 8, 8) + Mlp(1024, 4096)) + Tables(1024, 32000));
}

TEST(HuggingFaceConfig, GptOssHasBiasesAndSinks) {
  // gpt-oss-20b, whose published weights have 20,914,757,184.
  const std::string config =
      R"({"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "head_dim": 64,
      "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8,
      "num_local_experts": 32, "num_experts_per_tok": 4, "vocab_size": 201088, "hidden_act": "silu",
      "max_position_embeddings": 131072, "sliding_window": 128, "attention_bias": true})";
  EXPECT_EQ(CountOf(config), 20914757184);
  const auto count = [](int64_t layers, int64_t experts) {
    const int64_t biases = (64 + 2 * 8) * 64 + 2880, sinks = 64;
    const int64_t of_expert = 3 * 2880 * 2880 + 3 * 2880, router = 2880 + 1;
    return layers * (Attention(2880, 64, 64, 8) + biases + sinks + 2880 +
                     experts * (of_expert + router)) +
           Tables(2880, 201088);
  };
  EXPECT_EQ(CountOf(config), count(24, 32));
  EXPECT_EQ(CountOf(absl::StrReplaceAll(config, {{": 24", ": 36"}, {": 32,", ": 128,"}})),
            count(36, 128));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, Read(config, 4096));
  EXPECT_EQ(Attribute(graph.layers[1], "window"), 128);
  EXPECT_EQ(Attribute(graph.layers[3], "window"), 0);
  EXPECT_EQ(graph.layers[1].priced_alone, "sinks");
  EXPECT_EQ(graph.layers[2].priced_alone, "experts with biases");
  EXPECT_EQ(Refusal(absl::StrReplaceAll(config, {{"true", "false"}})),
            "c.json: attention_bias: false: experts have biases; must be true");
}

std::string Wrapped(const char* type, const char* text, const char* more = "") {
  return absl::StrCat(R"({"model_type": ")", type, R"(", "vision_config": {"model_type": "v"}, )",
                      R"("text_config": {)", text, "}", more, "}");
}

TEST(HuggingFaceWrappers, TheTextModelIsReadAndTheRestIsSaid) {
  const char* const small =
      R"("model_type": "mistral", "hidden_size": 1024, "intermediate_size": 4096,
      "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128,
      "vocab_size": 32000, "max_position_embeddings": 4096)";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, Read(Wrapped("mistral3", small)));
  EXPECT_EQ(graph.num_parameters(),
            4 * (Attention(1024, 128, 8, 2) + Mlp(1024, 4096)) + Tables(1024, 32000));
  EXPECT_THAT(graph.notes, ElementsAre("c.json: its text model, of type mistral, is priced; the "
                                       "vision tower of mistral3 is not"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const ModelGraph unsaid,
      Read(Wrapped("mistral3", small, R"(, "audio_config": {"model_type": "a"})"), 0));
  EXPECT_THAT(unsaid.notes,
              ElementsAre(HasSubstr("the vision tower and the audio tower of mistral3 are not"),
                          HasSubstr("a sample has 4096 tokens")));
  EXPECT_EQ(CountOf(Wrapped("mistral3", small, R"(, "tie_word_embeddings": true)")),
            graph.num_parameters() - 32000 * 1024);
}

// Their text_config has what differs from the type's defaults alone.
TEST(HuggingFaceWrappers, PublishedFiles) {
  // Gemma 3 4B: heads of 256 and norms of q and k, two more norms a block, one table.
  EXPECT_EQ(CountOf(Wrapped("gemma3", R"("model_type": "gemma3_text", "hidden_size": 2560,
      "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024)")),
            34 * (Attention(2560, 256, 8, 4) + Mlp(2560, 10240) + 2 * 2560 + 2 * 256) +
                Tables(2560, 262208, 1));
  EXPECT_EQ(CountOf(Wrapped("gemma3", R"("hidden_size": 2560, "intermediate_size": 10240,
      "num_hidden_layers": 34, "vocab_size": 262144)")),
            3880099328);
  // LLaVA 1.5 7B: Llama's defaults, with 64 words more.
  EXPECT_EQ(CountOf(Wrapped("llava", R"("model_type": "llama", "vocab_size": 32064)")),
            6738415616 + 2 * 64 * 4096);
  EXPECT_EQ(CountOf(Wrapped("llava", R"("max_position_embeddings": 4096)")), 6738415616);
  // Qwen2.5-VL 7B, whose older files have the text model's keys beside the others'.
  const char* const qwen = R"("hidden_size": 3584, "intermediate_size": 18944,
      "max_position_embeddings": 128000, "num_attention_heads": 28, "num_hidden_layers": 28,
      "num_key_value_heads": 4, "tie_word_embeddings": false, "use_sliding_window": false,
      "sliding_window": 32768, "max_window_layers": 28, "vocab_size": 152064)";
  const int64_t qwen_7b = FindModel("--model", "qwen2.5-7b")->num_parameters();
  const std::string flat =
      absl::StrCat(R"({"model_type": "qwen2_5_vl", "vision_config": {}, )", qwen, "}");
  EXPECT_EQ(CountOf(flat), qwen_7b);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, Read(flat));
  EXPECT_THAT(graph.notes, ElementsAre(HasSubstr("of type qwen2, is priced; the vision tower of "
                                                 "qwen2_5_vl is not")));
  EXPECT_EQ(CountOf(Wrapped("qwen2_5_vl",
                            absl::StrCat(R"("model_type": "qwen2_5_vl_text", )", qwen).c_str())),
            qwen_7b);
  // PaliGemma 3B: Gemma 2B's text model.
  EXPECT_EQ(CountOf(Wrapped("paligemma", R"("model_type": "gemma", "hidden_size": 2048,
      "intermediate_size": 16384, "num_attention_heads": 8, "num_hidden_layers": 18,
      "num_key_value_heads": 1)")),
            FindModel("--model", "gemma-2b")->num_parameters());
}

TEST(HuggingFaceWrappers, UnknownTypesAreTakenForNoOther) {
  EXPECT_THAT(
      Refusal(Wrapped("mllama", R"("model_type": "mllama_text_model")")),
      StartsWith("c.json: text_config.model_type: \"mllama_text_model\": no model of this type "
                 "can be made, and it is taken for no other; "));
  const auto refusal = [](const char* type) {
    return Refusal(absl::StrCat(R"({"model_type": ")", type, R"("})"));
  };
  EXPECT_THAT(refusal("qwen3_next"), HasSubstr("no other; did you mean qwen3?"));
  EXPECT_THAT(refusal("deepseek_v2"), HasSubstr("no other; did you mean deepseek_v3?"));
  EXPECT_THAT(refusal("llama4"), HasSubstr("no other; did you mean llama4_text?"));
  EXPECT_THAT(refusal("phi"), HasSubstr("no other; did you mean phi3?"));
  EXPECT_THAT(refusal("qwen2_5_vl"), HasSubstr("no other; did you mean "));
  EXPECT_THAT(Refusal(Wrapped("llava", R"("model_type": "llama", "hidden_size": 5)")),
              StartsWith("c.json: text_config.num_attention_heads: 32: must divide"));
  EXPECT_THAT(Refusal(Wrapped("kimi_vl", R"("model_type": "deepseek_v3")")),
              StartsWith("c.json: text_config.num_hidden_layers: missing"));
}

}  // namespace
}  // namespace pipelab
