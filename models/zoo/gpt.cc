#include "models/zoo/gpt.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/layers/gpt_attention_spec.h"
#include "models/layers/gpt_embedding_spec.h"
#include "models/layers/gpt_head_spec.h"
#include "models/layers/gpt_mlp_spec.h"
#include "models/zoo/size_check.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kStddev = 0.02;

constexpr int64_t kMostMlpRatio = 1 << 6;

absl::Status Check(const GptConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("layers", c.layers, kMostLayers));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("hidden", c.hidden, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("heads", c.heads, c.hidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("tokens", c.tokens, kMostTokens));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("vocabulary", c.vocabulary, kMostVocabulary));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("mlp_ratio", c.mlp_ratio, kMostMlpRatio));
  PIPELAB_RETURN_IF_ERROR(CheckHeads(c.heads, c.hidden));
  return CheckDropout(c.dropout);
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
