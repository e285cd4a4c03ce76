// Weights as transformers saves them give the logits that transformers gives, for a small model of
// each family in hugging_face.json, which tools/pytorch/hugging_face_logits.py made. The file has
// names and shapes of tensors; their numbers are a formula of both.
//
// How far may our float32 be from float64? A logit is the end of a chain of sums: through each
// layer a number goes through a few dozen rounded operations and the sums of its products, each of
// which may be off by half an epsilon for each term. kSpread times the root of all those terms,
// times epsilon and the largest logit, is what their random roundings add up to.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/tensor/arena.h"
#include "models/checkpoint/safetensors.h"
#include "models/checkpoint/weight_files.h"
#include "models/data/batch_source.h"
#include "models/files/hugging_face_weights.h"
#include "models/files/model_file.h"
#include "models/graph/layer_spec.h"
#include "models/layers/serial_trainer.h"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kGoldens[] = "tests/pytorch/hugging_face.json";
constexpr double kSpread = 2;

// weights_of in hugging_face_logits.py: k / 256.
float WeightOf(absl::string_view name, uint64_t index) {
  if (absl::EndsWith(name, "e_score_correction_bias")) return 0;
  uint64_t stream = 0xCBF29CE484222325;
  for (const char c : name) stream = (stream ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  uint64_t z = stream + (index + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  z ^= z >> 31;
  return (static_cast<float>((z >> 32) % 255) - 127) / 256;
}

json Goldens() {
  const auto text = ReadFile(kGoldens);
  EXPECT_THAT(text, IsOk());
  const auto goldens = ParseJson(text.ok() ? *text : "{}", kGoldens);
  EXPECT_THAT(goldens, IsOk());
  return goldens.ok() ? *goldens : json::object();
}

Safetensors WeightsOf(const json& golden) {
  Safetensors file;
  for (const auto& [name, shape] : golden["tensors"].items()) {
    StoredTensor& tensor = file.tensors[name];
    tensor.shape = shape.get<std::vector<int64_t>>();
    int64_t size = 1;
    for (const int64_t dimension : tensor.shape) size *= dimension;
    std::vector<float> values(size);
    for (int64_t i = 0; i < size; ++i) values[i] = WeightOf(name, i);
    tensor.values = std::move(values);
  }
  return file;
}

// The same numbers as bfloat16, which has them.
std::string AsBFloat16(const Safetensors& file) {
  json header = json::object();
  std::string data;
  for (const auto& [name, tensor] : file.tensors) {
    const size_t begin = data.size();
    for (const float value : std::get<std::vector<float>>(tensor.values)) {
      uint32_t bits = 0;
      std::memcpy(&bits, &value, 4);
      EXPECT_EQ(bits & 0xFFFF, 0) << value;
      data.append({static_cast<char>(bits >> 16), static_cast<char>(bits >> 24)});
    }
    header[name] = {
        {"dtype", "BF16"}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  std::string contents(8, '\0');
  const uint64_t length = text.size();
  std::memcpy(contents.data(), &length, 8);
  return absl::StrCat(contents, text, data);
}

// One sample. Its targets are asked for and mean nothing.
class OneSample : public BatchSource {
 public:
  OneSample(const json& golden, const ModelGraph& graph)
      : BatchSource({graph.layers.front().data[0], graph.layers.back().data[0]}), golden_(golden) {}

  void FillIds(int field, int64_t, int64_t, absl::Span<int32_t> out) const override {
    std::fill(out.begin(), out.end(), 0);
    if (field > 0) return;
    const auto tokens = golden_["tokens"].get<std::vector<int32_t>>();
    std::copy(tokens.begin(), tokens.end(), out.begin());
  }
  // An image, channels last; the formula's has them first.
  void FillFloats(int, int64_t, int64_t, absl::Span<float> out) const override {
    const auto shape = golden_["image"].get<std::vector<int64_t>>();
    const int64_t pixels = shape[1] * shape[2];
    for (int64_t i = 0; i < static_cast<int64_t>(out.size()); ++i) {
      out[i] = WeightOf("image", i % shape[0] * pixels + i / shape[0]);
    }
  }

 private:
  const json golden_;
};

absl::StatusOr<ModelGraph> GraphOf(const json& golden) {
  ModelFileOptions options;
  if (golden.contains("tokens")) options.tokens = static_cast<int64_t>(golden["tokens"].size());
  return ParseModel(golden["config"].dump(), "config.json", "m", options);
}

absl::StatusOr<std::vector<float>> LogitsOf(const json& golden, const std::string& weights) {
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, GraphOf(golden));
  PIPELAB_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::Open(weights));
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  const OneSample data(golden, graph);
  SerialOptions options;
  options.data = &data;
  PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<SerialTrainer> trainer,
                           SerialTrainer::Create(graph, backend.get(), options));
  PIPELAB_RETURN_IF_ERROR(
      ReadHuggingFaceWeights(golden["config"], "config.json", graph, files,
                             [&](const ParameterSpec& p, const std::vector<float>& value) {
                               return trainer->SetParameterValue(p.name, value);
                             }));
  std::vector<float> logits;
  PIPELAB_RETURN_IF_ERROR(trainer->Evaluate(data, 0, 0, 1, &logits).status());
  return logits;
}

// Terms of the sums that a logit's chain goes through: products have as many as rows, attention as
// many as tokens, norms as many as columns.
double TermsOf(const ModelGraph& graph) {
  double terms = 0;
  for (const LayerSpec& layer : graph.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      terms += static_cast<double>(p.shape.size() > 1 ? p.shape[p.shape.size() - 2] : p.size());
    }
    if (!layer.output_shape.empty()) terms += static_cast<double>(layer.output_shape[0]);
  }
  return terms;
}

std::vector<double> ExpectedOf(const json& golden) {
  std::vector<double> all;
  for (const json& row : golden["logits"]) all.insert(all.end(), row.begin(), row.end());
  return all;
}

double LargestOf(const json& golden) {
  double largest = 0;
  for (const double x : ExpectedOf(golden)) largest = std::max(largest, std::abs(x));
  return largest;
}

double DistanceFrom(const json& golden, const std::vector<float>& logits) {
  const std::vector<double> expected = ExpectedOf(golden);
  if (logits.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double off = 0;
  for (size_t i = 0; i < logits.size(); ++i) off = std::max(off, std::abs(expected[i] - logits[i]));
  return off;
}

double AllowedFor(const json& golden) {
  const absl::StatusOr<ModelGraph> graph = GraphOf(golden);
  EXPECT_THAT(graph, IsOk());
  return kSpread * std::sqrt(TermsOf(*graph)) * std::numeric_limits<float>::epsilon() *
         LargestOf(golden);
}

std::string Folder(const std::string& name) {
  const std::string folder = JoinPath(testing::TempDir(), name);
  EXPECT_THAT(MakeDirectories(folder), IsOk());
  return folder;
}

TEST(HuggingFace, LogitsAreThoseOfTransformers) {
  const json goldens = Goldens();
  EXPECT_GE(goldens.size(), 13);
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
TEST(HuggingFace, RoutersOfDeepSeekThatAreNoneHere) {
  const json golden = Goldens()["deepseek_v3"];
  const std::string file = JoinPath(Folder("routers"), "w.safetensors");
  Safetensors weights = WeightsOf(golden);
  ASSERT_THAT(WriteSafetensors(file, weights), IsOk());
  json grouped = golden;
  grouped["config"]["n_group"] = 2;
  EXPECT_THAT(LogitsOf(grouped, file),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("config.json: topk_group: 1: no router here chooses among 2 ")));
  const std::string bias = "model.layers.1.mlp.gate.e_score_correction_bias";
  std::get<std::vector<float>>(weights.tensors.at(bias).values)[2] = 0.5f;
  ASSERT_THAT(WriteSafetensors(file, weights), IsOk());
  EXPECT_THAT(LogitsOf(golden, file),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(bias + "\" is not zero, and no router here has a bias")));
}

// transformers' own default; its logits would differ by a thousandth.
TEST(HuggingFace, AnExactGeluIsRefused) {
  json golden = Goldens()["vit"];
  const std::string file = JoinPath(Folder("gelu"), "w.safetensors");
  ASSERT_THAT(WriteSafetensors(file, WeightsOf(golden)), IsOk());
  golden["config"]["hidden_act"] = "gelu";
  EXPECT_THAT(LogitsOf(golden, file),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("config.json: hidden_act: \"gelu\": layers here have the GELU's "
                                 "tanh form")));
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
