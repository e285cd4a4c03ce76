#include "models/zoo/gpt.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/specs/gpt_embedding_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/zoo/size_check.h"
#include "models/zoo/transformer_blocks.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostMlpRatio = 1 << 6;

absl::Status Check(const GptConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("layers", c.layers, kMostLayers));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("hidden", c.hidden, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("heads", c.heads, c.hidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("tokens", c.tokens, kMostTokens));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("vocabulary", c.vocabulary, kMostVocabulary));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("mlp_ratio", c.mlp_ratio, kMostMlpRatio));
  PIPELAB_RETURN_IF_ERROR(CheckHeads(c.heads, c.hidden));
  if (c.tied_embeddings && c.output_bias) {
    return absl::InvalidArgumentError("--output_bias: not with --tied_embeddings");
  }
  return CheckDropout(c.dropout);
}

}  // namespace

absl::StatusOr<ModelGraph> BuildGpt(const GptConfig& c) {
  PIPELAB_RETURN_IF_ERROR(Check(c));
  const std::string tie = c.tied_embeddings ? "embedding" : "";
  ModelGraph graph;
  graph.name = "gpt";
  GptEmbeddingSizes embedding;
  embedding.name = "embedding";
  embedding.positions = c.positions;
  embedding.tokens = c.tokens;
  embedding.hidden = c.hidden;
  embedding.vocabulary = c.vocabulary;
  embedding.stddev = kTransformerStddev;
  embedding.tie = tie;
  graph.layers.push_back(GptEmbeddingSpec(embedding));
  TransformerSizes sizes;
  sizes.tokens = c.tokens;
  sizes.hidden = c.hidden;
  sizes.heads = c.heads;
  sizes.feed_forward = c.hidden * c.mlp_ratio;
  sizes.dropout = c.dropout;
  sizes.residual_branches = 2 * c.layers;
  int last = 0;
  for (int64_t block = 0; block < c.layers; ++block) {
    const std::string name = absl::StrCat("block", block);
    last = AddSelfAttention(sizes, name + "/attention", last, &graph);
    last = AddFeedForward(sizes, name + "/mlp", last, &graph);
  }
  GptHeadSizes head;
  head.name = "head";
  head.input = last;
  head.tokens = c.tokens;
  head.hidden = c.hidden;
  head.vocabulary = c.vocabulary;
  head.stddev = kTransformerStddev;
  head.tie = tie;
  head.output_bias = c.output_bias;
  graph.layers.push_back(GptHeadSpec(head));
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  return graph;
}

}  // namespace pipelab
