#include "models/zoo/transformer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "models/graph/translation_fields.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/norm_spec.h"
#include "models/zoo/size_check.h"
#include "models/zoo/transformer_blocks.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status CheckTransformer(const TransformerConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("layers", c.layers, kMostLayers));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("hidden", c.hidden, kMostHidden));
  if (c.head_size == 0) {
    PIPELAB_RETURN_IF_ERROR(CheckHeads(c.heads, c.hidden));
  } else {
    PIPELAB_RETURN_IF_ERROR(CheckModelSize("heads", c.heads, kMostHidden));
    PIPELAB_RETURN_IF_ERROR(CheckModelSize("head_size", c.head_size, kMostHidden / c.heads));
  }
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("feed_forward", c.feed_forward, 64 * kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("source_tokens", c.source_tokens, kMostTokens));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("target_tokens", c.target_tokens, kMostTokens));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("vocabulary", c.vocabulary, kMostVocabulary));
  return CheckDropout(c.dropout);
}

TransformerSizes SizesOf(const TransformerConfig& c) {
  TransformerSizes sizes;
  sizes.hidden = c.hidden;
  sizes.heads = c.heads;
  sizes.head_size = c.head_size;
  sizes.feed_forward = c.feed_forward;
  sizes.dropout = c.dropout;
  return sizes;
}

int AddTokenEmbedding(const TransformerConfig& c, const char* name, const char* field,
                      int64_t tokens, ModelGraph* graph) {
  GptEmbeddingSizes embedding;
  embedding.name = name;
  embedding.field = field;
  embedding.positions = c.positions;
  embedding.tokens = tokens;
  embedding.hidden = c.hidden;
  embedding.vocabulary = c.vocabulary;
  // Beside sines of size 1 as beside a table of positions.
  embedding.stddev = c.positions == Positions::kSinusoidal ? 1 : kTransformerStddev;
  if (c.shared_embedding) embedding.tie = "embedding";
  graph->layers.push_back(GptEmbeddingSpec(embedding));
  return LastLayer(*graph);
}

// Returns the norm at its end.
int AddEncoder(const TransformerConfig& c, ModelGraph* graph) {
  TransformerSizes sizes = SizesOf(c);
  sizes.tokens = c.source_tokens;
  sizes.residual_branches = 2 * c.layers;
  sizes.causal = false;
  sizes.key_lengths = kSourceLength;
  int last = AddTokenEmbedding(c, "encoder/embedding", kSource, c.source_tokens, graph);
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string name = absl::StrCat("encoder/block", i);
    last = AddSelfAttention(sizes, name + "/attention", last, graph);
    last = AddFeedForward(sizes, name + "/mlp", last, graph);
  }
  NormSizes norm;
  norm.name = "encoder/norm";
  norm.input = last;
  norm.tokens = c.source_tokens;
  norm.hidden = c.hidden;
  graph->layers.push_back(NormSpec(norm));
  return last + 1;
}

int AddDecoder(const TransformerConfig& c, int memory, ModelGraph* graph) {
  TransformerSizes sizes = SizesOf(c);
  sizes.tokens = c.target_tokens;
  sizes.residual_branches = 3 * c.layers;
  int last = AddTokenEmbedding(c, "decoder/embedding", kTokens, c.target_tokens, graph);
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string name = absl::StrCat("decoder/block", i);
    last = AddSelfAttention(sizes, name + "/attention", last, graph);
    last = AddCrossAttention(sizes, name + "/cross", last, memory, kSourceLength, graph);
    last = AddFeedForward(sizes, name + "/mlp", last, graph);
  }
  return last;
}

}  // namespace

TransformerConfig TransformerLha(int64_t layers, int64_t feed_forward, int64_t heads) {
  TransformerConfig c;
  c.layers = layers;
  c.hidden = 1024;
  c.heads = heads;
  c.head_size = 64;
  c.feed_forward = feed_forward;
  c.source_tokens = c.target_tokens = 256;
  c.vocabulary = 64000;
  c.shared_embedding = true;
  c.positions = Positions::kSinusoidal;
  return c;
}

absl::StatusOr<ModelGraph> BuildTransformer(const TransformerConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckTransformer(c));
  ModelGraph graph;
  graph.name = "transformer";
  const int memory = AddEncoder(c, &graph);
  GptHeadSizes head;
  head.name = "head";
  head.input = AddDecoder(c, memory, &graph);
  head.tokens = c.target_tokens;
  head.hidden = c.hidden;
  head.vocabulary = c.vocabulary;
  head.stddev = kTransformerStddev;
  head.padded_targets = true;
  graph.layers.push_back(GptHeadSpec(head));
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  return graph;
}

}  // namespace pipelab
