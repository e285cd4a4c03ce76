#include "models/zoo/mmt.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "models/layers/concat_spec.h"
#include "models/layers/dense_spec.h"
#include "models/layers/gpt_embedding_spec.h"
#include "models/layers/gpt_head_spec.h"
#include "models/zoo/size_check.h"
#include "models/zoo/transformer_blocks.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostBranches = 64;

absl::Status Check(const MmtConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("branches", c.branches, kMostBranches));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("layers", c.layers, kMostLayers));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("hidden", c.hidden, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckHeads(c.heads, c.hidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("tokens", c.tokens, kMostTokens));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("feed_forward", c.feed_forward, 64 * kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("vocabulary", c.vocabulary, kMostVocabulary));
  return CheckDropout(c.dropout);
}

int64_t LayersOfBranch(const MmtConfig& c) { return 1 + 2 * c.layers; }

// Returns the branch's last layer.
int AddBranch(const MmtConfig& c, int64_t branch, ModelGraph* graph) {
  const std::string prefix = absl::StrCat("branch", branch);
  GptEmbeddingSizes embedding;
  embedding.name = prefix + "/embedding";
  embedding.tokens = c.tokens;
  embedding.hidden = c.hidden;
  embedding.vocabulary = c.vocabulary;
  embedding.stddev = kTransformerStddev;
  graph->layers.push_back(GptEmbeddingSpec(embedding));
  TransformerSizes sizes;
  sizes.tokens = c.tokens;
  sizes.hidden = c.hidden;
  sizes.heads = c.heads;
  sizes.feed_forward = c.feed_forward;
  sizes.dropout = c.dropout;
  sizes.residual_branches = 2 * c.layers;
  int last = LastLayer(*graph);
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string name = absl::StrCat(prefix, "/block", i);
    last = AddSelfAttention(sizes, name + "/attention", last, graph);
    last = AddFeedForward(sizes, name + "/mlp", last, graph);
  }
  return last;
}

}  // namespace

MmtConfig PublishedMmt() {
  MmtConfig c;
  c.branches = 4;
  c.layers = 8;
  c.hidden = 1024;
  c.heads = 16;
  c.tokens = 256;
  c.feed_forward = 4096;
  c.vocabulary = 32000;
  return c;
}

absl::StatusOr<ModelGraph> BuildMmt(const MmtConfig& c) {
  PIPELAB_RETURN_IF_ERROR(Check(c));
  ModelGraph graph;
  graph.name = "mmt";
  ConcatSizes concat;
  concat.name = "join/concat";
  concat.tokens = c.tokens;
  for (int64_t b = 0; b < c.branches; ++b) {
    concat.inputs.push_back(AddBranch(c, b, &graph));
    concat.widths.push_back(c.hidden);
  }
  graph.layers.push_back(ConcatSpec(concat));
  DenseSizes dense;
  dense.name = "join/dense";
  dense.input = LastLayer(graph);
  dense.tokens = c.tokens;
  dense.in = c.branches * c.hidden;
  dense.out = c.hidden;
  dense.stddev = kTransformerStddev;
  graph.layers.push_back(DenseSpec(dense));
  GptHeadSizes head;
  head.name = "head";
  head.input = dense.input + 1;
  head.tokens = c.tokens;
  head.hidden = c.hidden;
  head.vocabulary = c.vocabulary;
  head.stddev = kTransformerStddev;
  graph.layers.push_back(GptHeadSpec(head));
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  return graph;
}

absl::StatusOr<std::vector<int>> MmtParallelStages(const MmtConfig& c, int stages_of_branch) {
  PIPELAB_RETURN_IF_ERROR(Check(c));
  const int64_t layers = LayersOfBranch(c);
  if (stages_of_branch < 1 || stages_of_branch > layers) {
    return absl::InvalidArgumentError(
        absl::StrCat("a branch of ", layers, " layers in ", stages_of_branch, " stages"));
  }
  std::vector<int> stage_of_layer;
  for (int64_t b = 0; b < c.branches; ++b) {
    for (int64_t i = 0; i < layers; ++i) {
      const int64_t part = i * stages_of_branch / layers;
      stage_of_layer.push_back(static_cast<int>(part * c.branches + b));
    }
  }
  stage_of_layer.resize(stage_of_layer.size() + 3, static_cast<int>(stages_of_branch * c.branches));
  return stage_of_layer;
}

}  // namespace pipelab
