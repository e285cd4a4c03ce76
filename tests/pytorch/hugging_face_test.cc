// Weights as transformers saves them give the logits that transformers gives, for a small model of
// each family in hugging_face.json, which tools/pytorch/hugging_face_logits.py made. The file has
// names and shapes of tensors; their numbers are a formula of both.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/checkpoint/safetensors.h"
#include "models/checkpoint/weight_files.h"
#include "models/files/model_file.h"
#include "models/graph/layer_spec.h"
#include "tests/pytorch/hugging_face_goldens.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(HuggingFace, LogitsAreThoseOfTransformers) {
  const json goldens = Goldens();
  EXPECT_GE(goldens.size(), 19);
  for (const auto& [name, golden] : goldens.items()) {
    const std::string file = JoinPath(Folder(name), "model.safetensors");
    const Safetensors weights = WeightsOf(golden);
    ASSERT_THAT(WriteSafetensors(file, weights), IsOk());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph whole,
                                 ParseModel(golden["config"].dump(), "config.json", "m"));
    EXPECT_EQ(whole.num_parameters(), golden["parameters"].get<int64_t>()) << name;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> logits, LogitsOf(golden, Folder(name)));
    const double off = DistanceFrom(golden, logits), largest = LargestOf(golden);
    const double allowed = AllowedFor(golden);
    std::printf("%s: logits up to %.3f, off by %.2e, allowed %.2e\n", name.c_str(), largest, off,
                allowed);
    EXPECT_LE(off, allowed) << name;
    ASSERT_THAT(WriteFileAtomically(file, AsBFloat16(weights)), IsOk());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> narrow, LogitsOf(golden, file));
    EXPECT_EQ(narrow, logits) << name << ": the same numbers in bfloat16";
  }
}

TEST(HuggingFace, ErrorsNameTheTensor) {
  const json golden = Goldens()["qwen3_moe"];
  const std::string file = JoinPath(Folder("wrong"), "w.safetensors");
  const auto message = [&](const auto& change, const json& config) {
    Safetensors weights = WeightsOf(golden);
    change(&weights.tensors);
    EXPECT_THAT(WriteSafetensors(file, weights), IsOk());
    json changed = golden;
    changed["config"].update(config);
    const auto logits = LogitsOf(changed, file);
    EXPECT_EQ(logits.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(logits.status().message()), Not(HasSubstr("\n")));
    return std::string(logits.status().message());
  };
  const std::string up = "model.layers.1.mlp.experts.3.up_proj.weight";
  const auto nothing = [](auto*) {};
  EXPECT_EQ(message([&](auto* t) { t->erase(up); }, json::object()),
            absl::StrCat(file, ": has no tensor \"", up, "\", for the parameter ",
                         "\"block1/experts/w1\""));
  EXPECT_THAT(message(
                  [&](auto* t) {
                    (*t)["model.layers.1.mlp.experts.3.upproj.weight"] = t->at(up);
                    t->erase(up);
                  },
                  json::object()),
              HasSubstr("; did you mean model.layers.1.mlp.experts.3.upproj.weight?"));
  EXPECT_EQ(message(
                [&](auto* t) {
                  t->at(up).shape = {24, 12};
                },
                json::object()),
            absl::StrCat(file, ": tensor \"", up, "\" is [24,12] there; the model takes [12,24]"));
  EXPECT_EQ(message(
                [&](auto* t) {
                  (*t)["lm_tail.bias"] = {{1}, std::vector<float>{1}};
                },
                json::object()),
            absl::StrCat(file,
                         ": tensor \"lm_tail.bias\" of [1] is no part of the model that the "
                         "config.json describes"));
  EXPECT_EQ(
      message([&](auto* t) { std::get<std::vector<float>>(t->at(up).values)[7] = std::nanf(""); },
              json::object()),
      absl::StrCat(file,
                   ": of the weights of \"block1/experts/w1\" one is nan; all must be "
                   "finite numbers"));
  EXPECT_THAT(message(nothing, {{"num_experts", 6}}),
              HasSubstr("is [5,24] there; the model takes"));
  EXPECT_THAT(message(nothing, {{"num_hidden_layers", 1}}),
              HasSubstr("tensor \"model.layers.1.input_layernorm.weight\" of [24] is no part"));
  EXPECT_EQ(message(nothing, {{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4}}}}),
            "config.json: rope_scaling.rope_type: \"yarn\": no layer scales rotary positions, so "
            "the weights' logits would be others; must be default");
  EXPECT_EQ(message(nothing, {{"rms_norm_eps", 0}}),
            "config.json: rms_norm_eps: 0: must be from 1e-15 to 1");
}

// The limit is narrow enough to notice a change of a setting by a hundredth.
TEST(HuggingFace, TheLimitNoticesSmallMistakes) {
  const json golden = Goldens()["qwen3_moe"];
  const std::string file = JoinPath(Folder("small"), "w.safetensors");
  ASSERT_THAT(WriteSafetensors(file, WeightsOf(golden)), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> right, LogitsOf(golden, file));
  for (const json& change : {json{{"rms_norm_eps", 0.0101}}, json{{"rope_theta", 101.0}},
                             json{{"norm_topk_prob", true}}, json{{"num_experts_per_tok", 3}}}) {
    json changed = golden;
    changed["config"].update(change);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> wrong, LogitsOf(changed, file));
    EXPECT_GT(DistanceFrom(golden, wrong), AllowedFor(golden)) << change;
    EXPECT_LE(DistanceFrom(golden, right), AllowedFor(golden));
  }
}

// What DeepSeek's routers have and none here.
TEST(HuggingFace, RoutersWithBiasesAreNoneHere) {
  const json golden = Goldens()["deepseek_v3"];
  const std::string file = JoinPath(Folder("routers"), "w.safetensors");
  Safetensors weights = WeightsOf(golden);
  const std::string bias = "model.layers.1.mlp.gate.e_score_correction_bias";
  std::get<std::vector<float>>(weights.tensors.at(bias).values)[2] = 0.5f;
  ASSERT_THAT(WriteSafetensors(file, weights), IsOk());
  EXPECT_THAT(LogitsOf(golden, file),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(bias + "\" is not zero, and no router here has a bias")));
}

// Gemma 2's own file, and any that does not say null.
TEST(HuggingFace, SoftCapsAreNoneHere) {
  json golden = Goldens()["gemma2"];
  const std::string file = JoinPath(Folder("caps"), "w.safetensors");
  ASSERT_THAT(WriteSafetensors(file, WeightsOf(golden)), IsOk());
  EXPECT_THAT(LogitsOf(golden, file), IsOk());
  golden["config"]["final_logit_softcapping"] = 30;
  EXPECT_THAT(LogitsOf(golden, file),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("config.json: final_logit_softcapping: no layer caps scores")));
  golden["config"].erase("final_logit_softcapping");
  EXPECT_THAT(LogitsOf(golden, file),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must be null")));
}

// DeepSeek-V3's weights have 8 bits and a factor for each block: here of 8 x 16, the last of which
// are cut. The same file in float32 gives the same logits.
TEST(HuggingFace, EightBitWeightsHaveFactorsOfBlocks) {
  constexpr int64_t kRows = 8, kColumns = 16;
  json golden = Goldens()["deepseek_v3"];
  golden["config"]["quantization_config"] = {
      {"quant_method", "fp8"}, {"fmt", "e4m3"}, {"weight_block_size", {kRows, kColumns}}};
  Safetensors wide = WeightsOf(golden);
  FileWriter narrow;
  int narrowed = 0;
  std::string last;
  for (auto& [name, tensor] : wide.tensors) {
    if (tensor.shape.size() != 2 || !absl::EndsWith(name, "_proj.weight")) {
      narrow.Add(name, tensor);
      continue;
    }
    const int64_t rows = tensor.shape[0], columns = tensor.shape[1];
    const int64_t across = (columns + kColumns - 1) / kColumns;
    StoredTensor factors = {{(rows + kRows - 1) / kRows, across}, std::vector<float>()};
    auto& scales = std::get<std::vector<float>>(factors.values);
    for (int64_t i = 0; i < factors.shape[0] * across; ++i) {
      scales.push_back(0.01f + std::abs(WeightOf(name + "_scale_inv", i)) / 8);
    }
    std::string bytes;
    auto& values = std::get<std::vector<float>>(tensor.values);
    for (int64_t i = 0; i < rows * columns; ++i) {
      // All numbers below 2, with their signs.
      const auto bits = static_cast<uint8_t>(i * 37 % 64 | (values[i] < 0 ? 128 : 0));
      bytes.push_back(static_cast<char>(bits));
      values[i] = FloatOfE4M3(bits) * scales[i / columns / kRows * across + i % columns / kColumns];
    }
    narrow.Add(name, "F8_E4M3", tensor.shape, bytes);
    narrow.Add(name + "_scale_inv", factors);
    last = name;
    ++narrowed;
  }
  EXPECT_GT(narrowed, 20);
  const std::string file = JoinPath(Folder("blocks"), "w.safetensors");
  ASSERT_THAT(WriteFileAtomically(file, narrow.Contents()), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> logits, LogitsOf(golden, file));
  const auto refusal = [&](const json& how) {
    json changed = golden;
    changed["config"]["quantization_config"].update(how);
    return std::string(LogitsOf(changed, file).status().message());
  };
  EXPECT_THAT(refusal({{"weight_block_size", {8, 8}}}), HasSubstr("blocks of 8 x 8 take ["));
  EXPECT_THAT(refusal({{"weight_block_size", {8}}}),
              HasSubstr("config.json: quantization_config.weight_block_size: [8]: must be rows"));
  EXPECT_EQ(refusal({{"quant_method", "mxfp4"}}),
            "config.json: quantization_config.quant_method: \"mxfp4\": such weights cannot be "
            "read; must be fp8, or none");
  ASSERT_THAT(WriteSafetensors(file, wide), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> expected, LogitsOf(golden, file));
  EXPECT_EQ(logits, expected);
  // Factors of what has no 8 bits belong to nothing.
  wide.tensors[last + "_scale_inv"] = {{1, 1}, std::vector<float>{1}};
  ASSERT_THAT(WriteSafetensors(file, wide), IsOk());
  EXPECT_THAT(std::string(LogitsOf(golden, file).status().message()),
              HasSubstr(last + "_scale_inv\" of [1,1] is no part of the model"));
}

// Another choice of a router's groups, or the other form of the GELU, is seen.
TEST(HuggingFace, TheLimitNoticesOtherGroupsGelusAndGemmas) {
  const std::vector<std::pair<std::string, json>> changes = {
      {"deepseek_v3_groups", {{"topk_group", 3}}},
      {"deepseek_v3_groups", {{"n_group", 1}, {"topk_group", 1}}},
      {"bert", {{"hidden_act", "gelu_new"}}},
      {"bert", {{"layer_norm_eps", 0.0101}}},
      {"bert_tanh_gelu", {{"hidden_act", "gelu"}}},
      {"vit_exact_gelu", {{"hidden_act", "gelu_new"}}},
      {"vit", {{"hidden_act", "gelu"}}},
      {"gemma2", {{"query_pre_attn_scalar", 11.1}}},
      {"gemma2", {{"sliding_window", 5}}},
      {"gemma3_text", {{"query_pre_attn_scalar", 11.1}}},
      {"gemma3_text", {{"rope_local_base_freq", 7.1}}},
      {"gemma3_text", {{"rms_norm_eps", 0.0101}}},
      {"gemma3_text", {{"sliding_window_pattern", 3}}}};
  for (const auto& [name, change] : changes) {
    json golden = Goldens()[name];
    const std::string file = JoinPath(Folder("others"), "w.safetensors");
    ASSERT_THAT(WriteSafetensors(file, WeightsOf(golden)), IsOk());
    golden["config"].update(change);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> wrong, LogitsOf(golden, file));
    EXPECT_GT(DistanceFrom(golden, wrong), AllowedFor(golden)) << name << " " << change;
  }
}

// What must not be told from the logits alone: a table of more positions, a base model's names,
// and buffers of old files.
TEST(HuggingFace, ReadsFilesOfOtherWriters) {
  const json golden = Goldens()["gpt2"];
  const Safetensors weights = WeightsOf(golden);
  Safetensors base;
  for (const auto& [name, tensor] : weights.tensors) {
    base.tensors[name.substr(std::string("transformer.").size())] = tensor;
  }
  base.tensors["h.0.attn.bias"] = {{1, 1}, std::vector<float>{1}};
  const std::string file = JoinPath(Folder("base"), "w.safetensors");
  ASSERT_THAT(WriteSafetensors(file, base), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> from_base, LogitsOf(golden, file));
  ASSERT_THAT(WriteSafetensors(file, weights), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> logits, LogitsOf(golden, file));
  EXPECT_EQ(from_base, logits);
  EXPECT_GT(golden["config"]["n_positions"].get<size_t>(), golden["tokens"].size());
}

}  // namespace
}  // namespace pipelab
