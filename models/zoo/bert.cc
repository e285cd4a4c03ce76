#include "models/zoo/bert.h"

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

absl::Status Check(const BertConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("layers", c.layers, kMostLayers));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("hidden", c.hidden, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckHeads(c.heads, c.hidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("tokens", c.tokens, kMostTokens));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("vocabulary", c.vocabulary, kMostVocabulary));
  if (c.feed_forward != 0) {
    PIPELAB_RETURN_IF_ERROR(CheckModelSize("feed_forward", c.feed_forward, 64 * kMostHidden));
  }
  return CheckDropout(c.dropout);
}

// Norm, dense, head.
void AddHead(const BertConfig& c, int input, ModelGraph* graph) {
  NormSizes norm;
  norm.name = "norm";
  norm.input = input;
  norm.tokens = c.tokens;
  norm.hidden = c.hidden;
  graph->layers.push_back(NormSpec(norm));
  DenseSizes dense;
  dense.name = "dense";
  dense.input = input + 1;
  dense.tokens = c.tokens;
  dense.in = dense.out = c.hidden;
  dense.activation = Activation::kGelu;
  dense.stddev = kTransformerStddev;
  graph->layers.push_back(DenseSpec(dense));
  graph->layers.back().split.whole = true;  // as in Megatron-LM's head of BERT
  GptHeadSizes head;
  head.name = "head";
  head.input = input + 2;
  head.tokens = c.tokens;
  head.hidden = c.hidden;
  head.vocabulary = c.vocabulary;
  head.stddev = kTransformerStddev;
  head.output_bias = true;
  head.padded_targets = true;
  graph->layers.push_back(GptHeadSpec(head));
}

}  // namespace

absl::StatusOr<ModelGraph> BuildBert(const BertConfig& c) {
  PIPELAB_RETURN_IF_ERROR(Check(c));
  ModelGraph graph;
  graph.name = "bert";
  GptEmbeddingSizes embedding;
  embedding.name = "embedding";
  embedding.tokens = c.tokens;
  embedding.hidden = c.hidden;
  embedding.vocabulary = c.vocabulary;
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
  if (c.padded) sizes.key_lengths = kTokensLength;
  int last = 0;
  for (int64_t block = 0; block < c.layers; ++block) {
    const std::string name = absl::StrCat("block", block);
    last = AddSelfAttention(sizes, name + "/attention", last, &graph);
    last = AddFeedForward(sizes, name + "/mlp", last, &graph);
  }
  AddHead(c, last, &graph);
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  return graph;
}

}  // namespace pipelab
