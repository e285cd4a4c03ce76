#include "tests/pytorch/hugging_face_goldens.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/tensor/arena.h"
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

constexpr char kGoldens[] = "tests/pytorch/hugging_face.json";
// How far may our float32 be from float64? A logit is the end of a chain of sums: through each
// layer a number goes through a few dozen rounded operations and the sums of its products, each of
// which may be off by half an epsilon for each term. kSpread times the root of all those terms,
// times epsilon and the largest logit, is what their random roundings add up to.
constexpr double kSpread = 2;

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

}  // namespace

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

std::string AsBFloat16(const Safetensors& file) {
  FileWriter writer;
  for (const auto& [name, tensor] : file.tensors) {
    std::string data;
    for (const float value : std::get<std::vector<float>>(tensor.values)) {
      uint32_t bits = 0;
      std::memcpy(&bits, &value, 4);
      EXPECT_EQ(bits & 0xFFFF, 0) << value;
      data.append({static_cast<char>(bits >> 16), static_cast<char>(bits >> 24)});
    }
    writer.Add(name, "BF16", tensor.shape, data);
  }
  return writer.Contents();
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

std::string FileWriter::Contents() const {
  const std::string text = header_.dump();
  std::string contents(8, '\0');
  const uint64_t length = text.size();
  std::memcpy(contents.data(), &length, 8);
  return absl::StrCat(contents, text, data_);
}

}  // namespace pipelab
