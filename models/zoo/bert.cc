#include "models/zoo/bert.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "models/specs/dense_spec.h"
#include "models/specs/gpt_embedding_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/norm_spec.h"
#include "models/zoo/size_check.h"
#include "models/zoo/transformer_blocks.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kTie[] = "embedding";

absl::Status CheckBert(const BertConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("layers", c.layers, kMostLayers));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("hidden", c.hidden, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckHeads(c.heads, c.hidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("tokens", c.tokens, kMostTokens));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("vocabulary", c.vocabulary, kMostVocabulary));
  if (c.feed_forward != 0) {
    PIPELAB_RETURN_IF_ERROR(CheckModelSize("feed_forward", c.feed_forward, 64 * kMostHidden));
  }
  if (c.token_types != 0) {
    PIPELAB_RETURN_IF_ERROR(CheckModelSize("token_types", c.token_types, kMostVocabulary));
  }
  // False for NaN.
  if (!(c.head_norm_epsilon >= 1e-15 && c.head_norm_epsilon <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--head_norm_epsilon=", c.head_norm_epsilon, ": must be from 1e-15 to 1"));
  }
  return CheckDropout(c.dropout);
}

int AddNorm(const BertConfig& c, const std::string& name, int input, ModelGraph* graph) {
  NormSizes norm;
  norm.name = name;
  norm.input = input;
  norm.tokens = c.tokens;
  norm.hidden = c.hidden;
  graph->layers.push_back(NormSpec(norm));
  return LastLayer(*graph);
}

// Dense, head.
void AddBertHead(const BertConfig& c, int input, ModelGraph* graph) {
  DenseSizes dense;
  dense.name = "dense";
  dense.input = input;
  dense.tokens = c.tokens;
  dense.in = dense.out = c.hidden;
  dense.activation = Activation::kGelu;
  dense.exact_gelu = c.exact_gelu;
  constexpr double kEpsilon = 1e-5;  // of every norm here (kernels/backend.h)
  dense.scale = std::sqrt(kEpsilon / c.head_norm_epsilon);
  dense.stddev = kTransformerStddev;
  graph->layers.push_back(DenseSpec(dense));
  graph->layers.back().split.whole = true;  // as in Megatron-LM's head of BERT
  GptHeadSizes head;
  head.name = "head";
  head.input = input + 1;
  head.tokens = c.tokens;
  head.hidden = c.hidden;
  head.vocabulary = c.vocabulary;
  head.stddev = kTransformerStddev;
  head.output_bias = true;
  if (c.tied_embeddings) head.tie = kTie;
  head.padded_targets = true;
  graph->layers.push_back(GptHeadSpec(head));
}

}  // namespace

absl::StatusOr<ModelGraph> BuildBert(const BertConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckBert(c));
  ModelGraph graph;
  graph.name = "bert";
  GptEmbeddingSizes embedding;
  embedding.name = "embedding";
  embedding.tokens = c.tokens;
  embedding.hidden = c.hidden;
  embedding.vocabulary = c.vocabulary;
  embedding.types = c.token_types;
  if (c.tied_embeddings) embedding.tie = kTie;
  embedding.stddev = kTransformerStddev;
  graph.layers.push_back(GptEmbeddingSpec(embedding));
  TransformerSizes sizes;
  sizes.tokens = c.tokens;
  sizes.hidden = c.hidden;
  sizes.heads = c.heads;
  sizes.feed_forward = c.feed_forward == 0 ? 4 * c.hidden : c.feed_forward;
  sizes.dropout = c.dropout;
  sizes.residual_branches = 2 * c.layers;
  sizes.causal = false;
  sizes.exact_gelu = c.exact_gelu;
  if (c.post_norms) sizes.norm = NormKind::kNone;
  if (c.padded) sizes.key_lengths = kTokensLength;
  int last = 0;
  const auto close = [&](const std::string& name) {
    if (c.post_norms) last = AddNorm(c, name + "_norm", last, &graph);
  };
  close("embedding");
  for (int64_t block = 0; block < c.layers; ++block) {
    const std::string name = absl::StrCat("block", block);
    last = AddSelfAttention(sizes, name + "/attention", last, &graph);
    close(name + "/attention");
    last = AddFeedForward(sizes, name + "/mlp", last, &graph);
    close(name + "/mlp");
  }
  if (!c.post_norms) last = AddNorm(c, "norm", last, &graph);
  AddBertHead(c, last, &graph);
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  return graph;
}

}  // namespace pipelab
