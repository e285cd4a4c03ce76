#include "models/files/hugging_face_config.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/files/model_file.h"
#include "models/graph/layer_spec.h"
#include "tools/base/json.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The sizes that the published files have; other keys of theirs are left out.
constexpr char kLlama3[] = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false,
  "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336, "rms_norm_eps": 1e-05,
  "max_position_embeddings": 8192, "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "rope_scaling": null, "rope_theta": 500000.0,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 128256})";
constexpr char kMistral[] = R"({
  "model_type": "mistral", "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
  "max_position_embeddings": 32768, "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "rope_theta": 10000.0, "sliding_window": 4096, "vocab_size": 32000})";
constexpr char kQwen2[] = R"({
  "model_type": "qwen2", "hidden_act": "silu", "hidden_size": 896, "intermediate_size": 4864,
  "max_position_embeddings": 32768, "max_window_layers": 24, "num_attention_heads": 14,
  "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
  "sliding_window": 32768, "tie_word_embeddings": true, "use_sliding_window": false,
  "vocab_size": 151936})";
constexpr char kMixtral[] = R"({
  "model_type": "mixtral", "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
  "max_position_embeddings": 32768, "num_attention_heads": 32, "num_experts_per_tok": 2,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
  "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
  "router_aux_loss_coef": 0.02, "sliding_window": null, "tie_word_embeddings": false,
  "vocab_size": 32000})";
constexpr char kQwen3[] = R"({
  "model_type": "qwen3", "attention_bias": false, "head_dim": 128, "hidden_act": "silu",
  "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 40960,
  "max_window_layers": 28, "num_attention_heads": 16, "num_hidden_layers": 28,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "sliding_window": null,
  "tie_word_embeddings": true, "use_sliding_window": false, "vocab_size": 151936})";
constexpr char kQwen3Moe[] = R"({
  "model_type": "qwen3_moe", "attention_bias": false, "decoder_sparse_step": 1, "head_dim": 128,
  "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 6144,
  "max_position_embeddings": 40960, "mlp_only_layers": [], "moe_intermediate_size": 768,
  "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8,
  "num_hidden_layers": 48, "num_key_value_heads": 4, "rope_theta": 1000000.0,
  "sliding_window": null, "tie_word_embeddings": false, "use_sliding_window": false,
  "vocab_size": 151936})";
// The first files of Gemma say "gelu".
constexpr char kGemma2b[] = R"({
  "model_type": "gemma", "attention_bias": false, "head_dim": 256, "hidden_act": "gelu",
  "hidden_activation": null, "hidden_size": 2048, "intermediate_size": 16384,
  "max_position_embeddings": 8192, "num_attention_heads": 8, "num_hidden_layers": 18,
  "num_key_value_heads": 1, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 10000.0,
  "vocab_size": 256000})";
// gemma-3-1b-pt and gemma-2-2b, as they are published.
constexpr char kGemma3[] = R"({
  "model_type": "gemma3_text", "attention_bias": false, "attn_logit_softcapping": null,
  "final_logit_softcapping": null, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
  "hidden_size": 1152, "intermediate_size": 6912, "max_position_embeddings": 32768,
  "num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 1,
  "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000,
  "rope_scaling": null, "rope_theta": 1000000, "sliding_window": 512, "sliding_window_pattern": 6,
  "vocab_size": 262144})";
constexpr char kGemma2[] = R"({
  "model_type": "gemma2", "attention_bias": false, "attn_logit_softcapping": 50.0,
  "final_logit_softcapping": 30.0, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh",
  "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2304, "intermediate_size": 9216,
  "max_position_embeddings": 8192, "num_attention_heads": 8, "num_hidden_layers": 26,
  "num_key_value_heads": 4, "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06,
  "rope_theta": 10000.0, "sliding_window": 4096, "vocab_size": 256000})";
constexpr char kMoonlight[] = R"({
  "model_type": "deepseek_v3", "attention_bias": false, "first_k_dense_replace": 1,
  "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 11264, "kv_lora_rank": 512,
  "max_position_embeddings": 8192, "moe_intermediate_size": 1408, "moe_layer_freq": 1,
  "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2, "norm_topk_prob": true,
  "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 27,
  "num_key_value_heads": 16, "num_nextn_predict_layers": 0, "q_lora_rank": null,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-05, "rope_theta": 50000.0,
  "routed_scaling_factor": 2.446, "scoring_func": "sigmoid", "topk_group": 1,
  "topk_method": "noaux_tc", "v_head_dim": 128, "vocab_size": 163840})";
// bert-base-uncased.
constexpr char kBert[] = R"({
  "architectures": ["BertForMaskedLM"], "model_type": "bert", "hidden_act": "gelu",
  "hidden_size": 768, "intermediate_size": 3072, "layer_norm_eps": 1e-12,
  "max_position_embeddings": 512, "num_attention_heads": 12, "num_hidden_layers": 12,
  "position_embedding_type": "absolute", "type_vocab_size": 2, "vocab_size": 30522})";
constexpr char kVit[] = R"({
  "model_type": "vit", "hidden_act": "gelu", "hidden_size": 768, "image_size": 224,
  "intermediate_size": 3072, "layer_norm_eps": 1e-12, "num_attention_heads": 12,
  "num_channels": 3, "num_hidden_layers": 12, "num_labels": 1000, "patch_size": 16,
  "qkv_bias": true})";
constexpr char kGpt2[] = R"({
  "model_type": "gpt2", "activation_function": "gelu_new", "n_ctx": 1024, "n_embd": 768,
  "n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257})";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

int64_t CountOf(const char* config, int64_t tokens = 0) {
  ModelFileOptions options;
  options.tokens = tokens;
  auto graph = ParseModel(config, "config.json", "config", options);
  EXPECT_THAT(graph, IsOk());
  return graph.ok() ? graph->num_parameters() : 0;
}

// As the published weights have them.
TEST(HuggingFaceConfig, CountsToTheLastParameter) {
  EXPECT_EQ(CountOf(kLlama3), 8030261248);
  EXPECT_EQ(CountOf(kMistral, 4096), 7241732096);
  EXPECT_EQ(CountOf(kQwen2), 494032768);
  EXPECT_EQ(CountOf(kMixtral), 46702792704);
  EXPECT_EQ(CountOf(kQwen3), 596049920);
  EXPECT_EQ(CountOf(kQwen3Moe), 30532122624);
  EXPECT_EQ(CountOf(kGpt2), 124439808);
  EXPECT_EQ(CountOf(kGemma2b), 2506172416);
  EXPECT_EQ(CountOf(kGemma3, 4096), 999885952);
  EXPECT_EQ(CountOf(kGemma2), 2614341888);
  EXPECT_EQ(CountOf(kMoonlight), FindModel("--model", "moonlight-16b-a3b")->num_parameters());
  EXPECT_EQ(CountOf(kVit), 86567656);
  // The count is of BertForMaskedLM; large is base with other sizes.
  EXPECT_EQ(CountOf(kBert), 109514298);
  EXPECT_EQ(FindModel("--model", "bert-base")->num_parameters(), 109514298);
  std::string large = Replaced(kBert, "\"hidden_size\": 768", "\"hidden_size\": 1024");
  large = Replaced(large, "\"intermediate_size\": 3072", "\"intermediate_size\": 4096");
  large = Replaced(large, "heads\": 12, \"num_hidden_layers\": 12",
                   "heads\": 16, \"num_hidden_layers\": 24");
  EXPECT_EQ(CountOf(large.c_str()), 335174458);
  EXPECT_EQ(FindModel("--model", "bert-large")->num_parameters(), 335174458);
  EXPECT_EQ(FindModel("--model", "gemma-7b")->num_parameters(), 8537680896);
}

// DeepSeek's head for a further token: two norms, the matrix of twice the width, a block, and the
// norm of its logits. What does not train leaves it out.
TEST(HuggingFaceConfig, HeadsForFurtherTokens) {
  const auto with = [](const char* heads) {
    return Replaced(kMoonlight, "\"num_nextn_predict_layers\": 0",
                    absl::StrCat("\"num_nextn_predict_layers\": ", heads));
  };
  constexpr int64_t c = 2048, attention = c + c * 16 * 192 + c * (512 + 64) + 512 + 512 * 16 * 256 +
                                          16 * 128 * c;
  constexpr int64_t experts = c + c * 64 + 66 * 3 * c * 1408;
  constexpr int64_t head = 2 * c + 2 * c * c + attention + experts + c;
  for (const int64_t heads : {0, 1, 2}) {
    EXPECT_EQ(CountOf(with(absl::StrCat(heads).c_str()).c_str()),
              CountOf(kMoonlight) + heads * head);
  }
  ModelFileOptions options;
  options.further_tokens = false;
  EXPECT_EQ(ParseModel(with("1"), "c", "c", options)->num_parameters(), CountOf(kMoonlight));
  EXPECT_EQ(std::string(ParseModel(with("17"), "c", "c").status().message()),
            "c: num_nextn_predict_layers: 17: must be a whole number from 0 to 16");
}

TEST(HuggingFaceConfig, IsTheModelOfTheSameName) {
  for (const auto& [config, name] :
       {std::make_pair(kLlama3, "llama-3-8b@2048"), std::make_pair(kMistral, "mistral-7b@2048"),
        std::make_pair(kQwen2, "qwen2.5-0.5b@2048"), std::make_pair(kMixtral, "mixtral-8x7b@2048"),
        std::make_pair(kQwen3, "qwen3-0.6b@2048"), std::make_pair(kQwen3Moe, "qwen3-30b-a3b@2048"),
        std::make_pair(kGemma2b, "gemma-2b@2048"), std::make_pair(kGemma2, "gemma-2-2b@2048"),
        std::make_pair(kGemma3, "gemma-3-1b@2048"),
        std::make_pair(kMoonlight, "moonlight-16b-a3b@2048")}) {
    ModelFileOptions options;
    options.tokens = 2048;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph read, ParseModel(config, "c", "c", options));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph known, FindModel("--model", name));
    ASSERT_EQ(read.layers.size(), known.layers.size());
    for (size_t i = 0; i < read.layers.size(); ++i) {
      EXPECT_EQ(read.layers[i].attributes, known.layers[i].attributes) << name << " layer " << i;
      EXPECT_EQ(read.layers[i].costs(3).forward.value(), known.layers[i].costs(3).forward.value());
      EXPECT_EQ(read.layers[i].costs(3).kept.value(), known.layers[i].costs(3).kept.value());
    }
  }
}

TEST(HuggingFaceConfig, GroupsOfExpertsAndFormsOfTheGelu) {
  const auto attributes = [](const std::string& config, const char* layer) {
    const auto graph = ParseModel(config, "c", "c");
    for (const LayerSpec& l : graph->layers) {
      if (l.name == layer) return l.attributes;
    }
    return LayerSpec().attributes;
  };
  const std::string grouped = Replaced(Replaced(kMoonlight, "\"n_group\": 1", "\"n_group\": 8"),
                                       "\"topk_group\": 1", "\"topk_group\": 4");
  EXPECT_EQ(attributes(grouped, "block1/experts").at("nodes"), 8);
  EXPECT_EQ(attributes(grouped, "block1/experts").at("most_nodes"), 4);
  // All groups are no choice.
  EXPECT_EQ(
      attributes(Replaced(grouped, "\"topk_group\": 4", "\"topk_group\": 8"), "block1/experts"),
      attributes(kMoonlight, "block1/experts"));
  EXPECT_EQ(attributes(kVit, "block3/mlp").count("exact_gelu"), 1);
  EXPECT_EQ(
      attributes(Replaced(kVit, "\"gelu\"", "\"gelu_new\""), "block3/mlp").count("exact_gelu"), 0);
}

TEST(HuggingFaceConfig, SamplesAreAsLongAsAsked) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const nlohmann::json root, ParseJson(kLlama3, "c"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GptConfig all, ReadHuggingFaceConfig(root, "c"));
  EXPECT_EQ(all.tokens, 8192);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GptConfig some, ReadHuggingFaceConfig(root, "c", 100));
  EXPECT_EQ(some.tokens, 100);
  EXPECT_EQ(some.rotary_base, 500000);
}

// As many as the file has positions are rarely what a user means: the model says so.
TEST(HuggingFaceConfig, SaysHowLongSamplesAreWhereNobodySaidIt) {
  const auto notes = [](const std::string& text, int64_t tokens) {
    ModelFileOptions options;
    options.tokens = tokens;
    const auto graph = ParseModel(text, "--model=c.json", "c", options);
    EXPECT_THAT(graph, IsOk());
    return graph->notes;
  };
  const std::string longer = Replaced(kLlama3, "8192", "131072");
  EXPECT_THAT(
      notes(longer, 0),
      ElementsAre("--model=c.json: a sample has 131072 tokens, as many as the file has "
                  "positions; --model=c.json@8192 gives another length (k: 1024, as in @4k)"));
  EXPECT_THAT(notes(longer, 8192), ElementsAre());
  EXPECT_THAT(notes(kGpt2, 0), ElementsAre(HasSubstr("c.json@512 gives")));
  EXPECT_THAT(notes(kMoonlight, 0), ElementsAre(HasSubstr(" 8192 tokens")));
  EXPECT_THAT(notes(kBert, 0), ElementsAre(HasSubstr(" 512 tokens")));
  EXPECT_THAT(notes(kVit, 0), ElementsAre());  // samples are images
}

// As newer versions of transformers write it.
TEST(HuggingFaceConfig, RotaryBaseMayBeInAnObject) {
  const std::string text =
      Replaced(kLlama3, R"("rope_theta": 500000.0)",
               R"("rope_parameters": {"rope_theta": 400000.0, "rope_type": "default"})");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const nlohmann::json root, ParseJson(text, "c"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GptConfig c, ReadHuggingFaceConfig(root, "c"));
  EXPECT_EQ(c.rotary_base, 400000);
}

TEST(HuggingFaceConfig, ErrorsNameTheKeyAndWhatWouldDo) {
  const auto message = [](const std::string& text, int64_t tokens = 0) {
    ModelFileOptions options;
    options.tokens = tokens;
    const auto graph = ParseModel(text, "c.json", "c", options);
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(graph.status().message()), Not(HasSubstr("\n")));
    return std::string(graph.status().message());
  };
  const auto llama = [&](const char* from, const char* to) {
    return message(Replaced(kLlama3, from, to));
  };
  EXPECT_EQ(message(Replaced(kLlama3, "\"llama\"", "\"lama\"")),
            "c.json: model_type: \"lama\": no model of this type can be made, and it is taken for "
            "no other; did you mean llama?");
  EXPECT_THAT(message(Replaced(kLlama3, "\"llama\"", "\"mamba\"")),
              HasSubstr("is taken for no other; there are gpt2, llama, "));
  EXPECT_EQ(llama("\"num_key_value_heads\": 8", "\"num_key_value_heads\": 5"),
            "c.json: num_key_value_heads: 5: must divide num_attention_heads, 32; nearest: 4");
  EXPECT_EQ(llama("\"num_attention_heads\": 32", "\"num_attention_heads\": 24"),
            "c.json: num_attention_heads: 24: must divide the hidden size, 4096; nearest: 16");
  EXPECT_THAT(llama("\"hidden_size\": 4096, ", ""), HasSubstr("c.json: hidden_size: missing"));
  EXPECT_THAT(llama("\"hidden_size\": 4096", "\"hidden_size\": \"4096\""),
              HasSubstr("hidden_size: \"4096\": must be a whole number from 1 to "));
  EXPECT_EQ(llama("\"silu\"", "\"relu\""),
            "c.json: hidden_act: \"relu\": no layer has it; must be silu");
  EXPECT_EQ(llama("500000.0", "0.5"), "c.json: rope_theta: 0.5: must be from 1 to 1e12");
  EXPECT_EQ(llama("\"attention_bias\": false", "\"attention_bias\": false, \"mlp_bias\": true"),
            "c.json: mlp_bias: true: must be as attention_bias, false");
  EXPECT_EQ(llama("\"attention_bias\": false", "\"head_dim\": 3"),
            "c.json: head_dim: heads of 3 numbers; rotary positions take an even number");
  EXPECT_EQ(message(kLlama3, 10000),
            "c.json: max_position_embeddings: 8192: samples of 10000 tokens are longer; give at "
            "most @8192");
  EXPECT_EQ(llama("8192", "10000000"),
            "c.json: max_position_embeddings: 10000000: must be at most 1048576; give the length "
            "of a sample, @4096");
  EXPECT_EQ(message(Replaced(kLlama3, R"("rope_theta": 500000.0)",
                             R"("rope_parameters": {"rope_theta": 0})")),
            "c.json: rope_parameters.rope_theta: 0: must be from 1 to 1e12");
  const auto gemma = [&](const char* from, const char* to) {
    return message(Replaced(kGemma2b, from, to));
  };
  EXPECT_EQ(
      gemma("\"gemma\"", "\"gemma3\""),
      "c.json: model_type: \"gemma3\": no model of this type can be made, and it is taken for "
      "no other; did you mean gemma3_text?");
  EXPECT_EQ(message(Replaced(kGemma3, "\"rope_scaling\"",
                             "\"use_bidirectional_attention\": true, \"rope_scaling\"")),
            "c.json: use_bidirectional_attention: true: no language model; must be false");
  EXPECT_EQ(
      message(Replaced(kGemma3, "\"rope_local_base_freq\": 10000", "\"rope_local_base_freq\": 0")),
      "c.json: rope_local_base_freq: 0: must be from 1 to 1e12");
  EXPECT_EQ(gemma("\"gelu\"", "\"silu\""),
            "c.json: hidden_act: \"silu\": no layer has it; must be gelu or gelu_pytorch_tanh");
  EXPECT_EQ(gemma("\"hidden_activation\": null", "\"hidden_activation\": \"gelu\""),
            "c.json: hidden_activation: \"gelu\": no layer has it; must be gelu_pytorch_tanh");
  const auto deepseek = [&](const char* from, const char* to) {
    return message(Replaced(kMoonlight, from, to));
  };
  EXPECT_EQ(deepseek("\"qk_rope_head_dim\": 64", "\"qk_rope_head_dim\": 63"),
            "c.json: qk_rope_head_dim: 63: rotary positions take an even number");
  EXPECT_THAT(deepseek("kv_lora_rank", "kv_rank"), HasSubstr("c.json: kv_lora_rank: missing"));
  EXPECT_EQ(deepseek("\"sigmoid\"", "\"softmax\""),
            "c.json: scoring_func: \"softmax\": no layer has it; must be sigmoid");
  EXPECT_THAT(deepseek("\"moe_layer_freq\": 1", "\"moe_layer_freq\": 0"),
              HasSubstr("c.json: moe_layer_freq: 0: must be a whole number from 1 to "));
  EXPECT_EQ(deepseek("\"attention_bias\": false", "\"attention_bias\": true"),
            "c.json: attention_bias: true: no latent attention has biases; must be false");
  EXPECT_THAT(deepseek("\"first_k_dense_replace\": 1", "\"first_k_dense_replace\": 28"),
              HasSubstr("c.json: first_k_dense_replace: 28: must be a whole number from 0 to 27"));
  EXPECT_EQ(deepseek("\"num_experts_per_tok\": 6", "\"num_experts_per_tok\": 65"),
            "c.json: num_experts_per_tok: 65: must be at most n_routed_experts, 64");
  EXPECT_EQ(
      deepseek("\"n_group\": 1", "\"n_group\": 3"),
      "c.json: n_group: 3: must be at most 64 and divide the 64 experts, and topk_group, 1, of "
      "them must have 6");
  EXPECT_THAT(deepseek("\"topk_group\": 1", "\"topk_group\": 2"),
              HasSubstr("c.json: topk_group: 2: must be a whole number from 1 to 1"));
  const auto bert = [&](const char* from, const char* to, int64_t tokens = 0) {
    return message(Replaced(kBert, from, to), tokens);
  };
  EXPECT_EQ(bert("\"num_attention_heads\": 12", "\"num_attention_heads\": 11"),
            "c.json: num_attention_heads: 11: must divide the hidden size, 768; nearest: 12");
  EXPECT_EQ(bert("\"gelu\"", "\"relu\""),
            "c.json: hidden_act: \"relu\": no layer has it; must be gelu or gelu_new or "
            "gelu_pytorch_tanh");
  EXPECT_EQ(bert("\"absolute\"", "\"relative_key\""),
            "c.json: position_embedding_type: \"relative_key\": no layer has it; must be absolute");
  EXPECT_EQ(bert("\"layer_norm_eps\": 1e-12", "\"layer_norm_eps\": 0"),
            "c.json: layer_norm_eps: 0: must be from 1e-15 to 1");
  EXPECT_EQ(bert("\"type_vocab_size\": 2", "\"is_decoder\": true"),
            "c.json: is_decoder: true: no decoder can be made of it; must be false");
  EXPECT_THAT(bert("\"type_vocab_size\": 2", "\"type_vocab_size\": 0"),
              HasSubstr("c.json: type_vocab_size: 0: must be a whole number from 1 to"));
  EXPECT_THAT(bert("512", "512", 513), HasSubstr("513"));
  const auto vit = [&](const char* from, const char* to, int64_t tokens = 0) {
    return message(Replaced(kVit, from, to), tokens);
  };
  EXPECT_EQ(vit("\"patch_size\": 16", "\"patch_size\": 15"),
            "c.json: patch_size: 15: must divide image_size, 224; nearest: 14");
  EXPECT_EQ(vit("\"qkv_bias\": true", "\"qkv_bias\": false"),
            "c.json: qkv_bias: false: no layer has it; must be true");
  EXPECT_EQ(vit("\"gelu\"", "\"relu\""),
            "c.json: hidden_act: \"relu\": no layer has it; must be gelu or gelu_new or "
            "gelu_pytorch_tanh");
  EXPECT_EQ(vit("\"num_attention_heads\": 12", "\"num_attention_heads\": 11"),
            "c.json: num_attention_heads: 11: must divide the hidden size, 768; nearest: 12");
  EXPECT_THAT(vit("\"vit\"", "\"vit\"", 16), HasSubstr("c.json: its samples are what they are"));
  EXPECT_EQ(FindLanguageModel("--model", "vit-b-16").status().message(),
            "--model=vit-b-16: must be a language model by name or a config.json");
  const auto windows = [&](const char* types) {
    return message(Replaced(kMistral, "\"sliding_window\": 4096",
                            absl::StrCat("\"sliding_window\": 4096, \"layer_types\": ", types)));
  };
  EXPECT_EQ(windows("[\"full_attention\"]"),
            "c.json: layer_types: 1 of them; must be one per layer, 32");
  EXPECT_EQ(
      windows(absl::StrCat("[3", absl::StrJoin(std::vector<std::string>(32), ",0"), "]").c_str()),
      "c.json: layer_types: 3: must be full_attention or sliding_attention");
  const auto experts = [&](const char* from, const char* to) {
    return message(Replaced(kQwen3Moe, from, to));
  };
  EXPECT_EQ(experts("\"num_experts\": 128", "\"num_experts\": 4"),
            "c.json: num_experts_per_tok: 8: must be at most num_experts, 4");
  EXPECT_EQ(experts("[]", "[48]"), "c.json: mlp_only_layers: 48: must be a block, from 0 to 47");
  EXPECT_EQ(experts("\"attention_bias\": false", "\"attention_bias\": true"),
            "c.json: attention_bias: true: no experts have biases; must be false");
  EXPECT_EQ(message(Replaced(kGpt2, "\"n_head\": 12", "\"n_head\": 7")),
            "c.json: n_head: 7: must divide the hidden size, 768; nearest: 6");
  EXPECT_EQ(message(R"({"name": "m", "layers": []})", 8),
            "c.json: its samples are what they are; @ sets the tokens of language models by name "
            "and of a config.json");
}

// Windows of all blocks, of those from one on, of those that are named.
TEST(HuggingFaceConfig, Windows) {
  const auto windows = [](const std::string& text) {
    auto graph = ParseModel(text, "c.json", "c.json");
    EXPECT_THAT(graph, IsOk());
    std::vector<double> all;
    for (const LayerSpec& layer : graph->layers) {
      if (layer.kind == "gpt_attention") all.push_back(Attribute(layer, "window"));
    }
    return all;
  };
  EXPECT_EQ(windows(kMistral), std::vector<double>(32, 4096));
  const std::string qwen =
      Replaced(kQwen2, "\"use_sliding_window\": false", "\"use_sliding_window\": true");
  EXPECT_EQ(windows(qwen), std::vector<double>(24, 0));  // max_window_layers is 24
  std::vector<double> some(24, 0);
  std::fill(some.begin() + 20, some.end(), 32768);
  EXPECT_EQ(windows(Replaced(qwen, "\"max_window_layers\": 24", "\"max_window_layers\": 20")),
            some);
  std::string types;
  for (int i = 0; i < 24; ++i) {
    some[i] = i % 2 == 0 ? 32768 : 0;
    absl::StrAppend(&types, i == 0 ? "" : ", ", i % 2 == 0 ? "\"sliding" : "\"full",
                    "_attention\"");
  }
  EXPECT_EQ(windows(Replaced(qwen, "\"max_window_layers\": 24",
                             absl::StrCat("\"layer_types\": [", types, "]"))),
            some);
}

}  // namespace
}  // namespace pipelab
