#include "models/zoo/vocabulary_shards.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/specs/add_spec.h"
#include "models/specs/further_token_spec.h"
#include "models/specs/gpt_embedding_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/norm_spec.h"
#include "models/specs/vocabulary_parts.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

template <typename... Parts>
absl::Status InvalidModel(const ModelGraph& graph, const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat("vocabulary of model \"", graph.name, "\": ", parts...));
}

absl::Status CheckShards(const ModelGraph& graph, int parts, int barriers) {
  if (barriers != 1 && barriers != 2) {
    return InvalidModel(graph, "barriers=", barriers, ": must be 1 or 2");
  }
  const LayerSpec &first = graph.layers.front(), &last = graph.layers.back();
  if (first.kind != kGptEmbedding || last.kind != kGptHead) {
    return InvalidModel(graph, "layer \"", first.name, "\" is a ", first.kind, " and layer \"",
                        last.name, "\" a ", last.kind, "; a ", kGptEmbedding, " and a ", kGptHead,
                        " can be divided by words");
  }
  for (const LayerSpec& layer : graph.layers) {
    if (layer.kind != kFurtherToken) continue;
    return InvalidModel(graph, "layer \"", layer.name,
                        "\" is of a head for further tokens, whose words cannot be divided");
  }
  const auto positions = static_cast<Positions>(WholeAttribute(first, "positions"));
  if (positions == Positions::kSinusoidal || first.parameters.size() > 2 ||
      first.data[0].name != kTokens) {
    return InvalidModel(
        graph, "layer \"", first.name,
        "\" has sinusoidal positions, types or a field of its own; it must have tokens "
        "and positions that learn, or none");
  }
  if (Attribute(last, "output_bias") != 0 || last.attributes.count(kTableBias) > 0) {
    return InvalidModel(graph, "layer \"", last.name, "\" has a bias; it must have a table alone");
  }
  const int64_t words = first.parameters[0].shape[0];
  if (parts >= 1 && parts <= words) return absl::OkStatus();
  return InvalidModel(graph, "parts=", parts, ": must be from 1 to its ", words, " words");
}

VocabularyPart PartOf(int64_t vocabulary, int parts, int k) {
  const int64_t first = vocabulary * k / parts;
  return {vocabulary, first, vocabulary * (k + 1) / parts - first};
}

std::string TieOf(const ParameterSpec& table, int k) {
  return table.tie.empty() ? "" : absl::StrCat(table.tie, ".", k);
}

int Push(LayerSpec layer, ModelGraph* graph) {
  graph->layers.push_back(std::move(layer));
  return static_cast<int>(graph->layers.size()) - 1;
}

void AddEmbeddingShards(const LayerSpec& whole, int parts, ModelGraph* graph) {
  AddSizes sum;
  sum.name = whole.name;
  sum.shape = whole.output_shape;
  const ParameterSpec& table = whole.parameters[GptEmbeddingParameter::kTable];
  for (int k = 0; k < parts; ++k) {
    VocabularyEmbeddingSizes s;
    s.name = absl::StrCat(whole.name, ".", k);
    s.tokens = whole.output_shape[0];
    s.hidden = whole.output_shape[1];
    s.part = PartOf(table.shape[0], parts, k);
    s.positions = k == 0 && whole.parameters.size() > 1;
    s.stddev = table.stddev;
    s.tie = TieOf(table, k);
    sum.inputs.push_back(Push(VocabularyEmbeddingSpec(s), graph));
  }
  Push(AddSpec(sum), graph);
}

void AddHeadShards(const LayerSpec& whole, int input, int parts, int barriers, ModelGraph* graph) {
  const ParameterSpec& table = whole.parameters.back();
  const bool padded = whole.data[0].padded, local = barriers == 1;
  const int64_t tokens = whole.input_shapes[0][0], hidden = whole.input_shapes[0][1];
  NormSizes norm;
  norm.name = whole.name;
  norm.input = input;
  norm.tokens = tokens;
  norm.hidden = hidden;
  norm.kind = whole.parameters.size() > 2 ? NormKind::kLayer : NormKind::kRms;
  const int x = whole.parameters.size() > 1 ? Push(NormSpec(norm), graph) : input;
  VocabularyLossSizes loss;
  loss.name = "loss";
  for (int k = 0; k < parts; ++k) {
    VocabularyShardSizes s;
    s.name = absl::StrCat(whole.name, ".", k);
    s.input = x;
    s.tokens = tokens;
    s.hidden = hidden;
    s.part = PartOf(table.shape[0], parts, k);
    s.padded_targets = padded;
    s.local_gradient = local;
    s.stddev = table.stddev;
    s.tie = TieOf(table, k);
    loss.parts.push_back(Push(VocabularyShardSpec(s), graph));
  }
  loss.tokens = tokens;
  loss.vocabulary = table.shape[0];
  loss.padded_targets = padded;
  loss.local_gradient = local;
  loss.input = x;
  loss.hidden = hidden;
  Push(VocabularyLossSpec(loss), graph);
}

}  // namespace

std::vector<int> ShardedVocabulary::StageOfLayer(const std::vector<int>& chain) const {
  const int stages = *std::max_element(chain.begin(), chain.end()) + 1;
  std::vector<int> stage_of_layer;
  for (int k = 0; k < parts; ++k) stage_of_layer.push_back(k);
  for (int stage : chain) stage_of_layer.push_back(parts + stage);
  // A head without a norm has no layer in the chain.
  stage_of_layer.resize(graph.layers.size() - parts - 1);
  for (int k = 0; k <= parts; ++k) stage_of_layer.push_back(parts + stages + k);
  return stage_of_layer;
}

absl::StatusOr<ShardedVocabulary> ShardVocabulary(const ModelGraph& graph, int parts,
                                                  int barriers) {
  PIPELAB_RETURN_IF_ERROR(CheckShards(graph, parts, barriers));
  ShardedVocabulary result;
  result.parts = parts;
  result.graph.name = graph.name;
  result.graph.width = graph.width;
  AddEmbeddingShards(graph.layers[0], parts, &result.graph);
  // Each layer between has `parts` more before it.
  for (size_t i = 1; i + 1 < graph.layers.size(); ++i) {
    LayerSpec layer = graph.layers[i];
    for (int& input : layer.inputs) input += parts;
    for (int& input : layer.detached) input += parts;
    result.graph.layers.push_back(std::move(layer));
  }
  const LayerSpec& head = graph.layers.back();
  AddHeadShards(head, head.inputs[0] + parts, parts, barriers, &result.graph);
  PIPELAB_RETURN_IF_ERROR(Validate(result.graph));
  return result;
}

}  // namespace pipelab
