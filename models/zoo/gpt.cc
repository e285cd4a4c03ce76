#include "models/zoo/gpt.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/layers/gpt_attention_spec.h"
#include "models/layers/gpt_embedding_spec.h"
#include "models/layers/gpt_head_spec.h"
#include "models/layers/gpt_mlp_spec.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kStddev = 0.02;

// Far above published models, and far below where a layer's bytes would overflow.
constexpr int64_t kMostLayers = 1 << 10;
constexpr int64_t kMostHidden = 1 << 16;
constexpr int64_t kMostTokens = 1 << 20;
constexpr int64_t kMostVocabulary = 1 << 20;
constexpr int64_t kMostMlpRatio = 1 << 6;

absl::Status CheckSize(const char* field, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", field, "=", value, ": must be from 1 to ", most));
}

absl::Status Check(const GptConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckSize("layers", c.layers, kMostLayers));
  PIPELAB_RETURN_IF_ERROR(CheckSize("hidden", c.hidden, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckSize("heads", c.heads, c.hidden));
  PIPELAB_RETURN_IF_ERROR(CheckSize("tokens", c.tokens, kMostTokens));
  PIPELAB_RETURN_IF_ERROR(CheckSize("vocabulary", c.vocabulary, kMostVocabulary));
  PIPELAB_RETURN_IF_ERROR(CheckSize("mlp_ratio", c.mlp_ratio, kMostMlpRatio));
  if (c.hidden % c.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--heads=", c.heads, ": heads must divide --hidden=", c.hidden));
  }
  // As the float that kernels take: 0.999999999 is 1 there. The comparisons are false for NaN.
  if (!(c.dropout >= 0 && static_cast<float>(c.dropout) < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dropout=", c.dropout, ": must be at least 0 and below 1"));
  }
  return absl::OkStatus();
}

void AddBlock(const GptConfig& c, int64_t block, ModelGraph* graph) {
  const std::string prefix = absl::StrCat("block", block);
  const double projection_stddev = kStddev / std::sqrt(2.0 * static_cast<double>(c.layers));
  GptAttentionSizes attention;
  attention.name = prefix + "/attention";
  attention.input = static_cast<int>(graph->layers.size()) - 1;
  attention.tokens = c.tokens;
  attention.hidden = c.hidden;
  attention.heads = c.heads;
  attention.dropout = c.dropout;
  attention.stddev = kStddev;
  attention.projection_stddev = projection_stddev;
  graph->layers.push_back(GptAttentionSpec(attention));
  GptMlpSizes mlp;
  mlp.name = prefix + "/mlp";
  mlp.input = attention.input + 1;
  mlp.tokens = c.tokens;
  mlp.hidden = c.hidden;
  mlp.inner = c.hidden * c.mlp_ratio;
  mlp.dropout = c.dropout;
  mlp.stddev = kStddev;
  mlp.projection_stddev = projection_stddev;
  graph->layers.push_back(GptMlpSpec(mlp));
}

}  // namespace

absl::StatusOr<ModelGraph> BuildGpt(const GptConfig& c) {
  PIPELAB_RETURN_IF_ERROR(Check(c));
  const std::string tie = c.tied_embeddings ? "embedding" : "";
  ModelGraph graph;
  graph.name = "gpt";
  GptEmbeddingSizes embedding;
  embedding.name = "embedding";
  embedding.tokens = c.tokens;
  embedding.hidden = c.hidden;
  embedding.vocabulary = c.vocabulary;
  embedding.stddev = kStddev;
  embedding.tie = tie;
  graph.layers.push_back(GptEmbeddingSpec(embedding));
  for (int64_t block = 0; block < c.layers; ++block) AddBlock(c, block, &graph);
  GptHeadSizes head;
  head.name = "head";
  head.input = static_cast<int>(graph.layers.size()) - 1;
  head.tokens = c.tokens;
  head.hidden = c.hidden;
  head.vocabulary = c.vocabulary;
  head.stddev = kStddev;
  head.tie = tie;
  graph.layers.push_back(GptHeadSpec(head));
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  return graph;
}

}  // namespace pipelab
