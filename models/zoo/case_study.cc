#include "models/zoo/case_study.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/specs/add_spec.h"
#include "models/specs/dense_spec.h"
#include "models/specs/gpt_embedding_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/zoo/feature_branches.h"
#include "models/zoo/size_check.h"
#include "models/zoo/transformer_blocks.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status CheckCaseStudy(const CaseStudyConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("branches", c.branches, kMostBranches));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("repeats", c.repeats, kMostLayers));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("hidden", c.hidden, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckHeads(c.heads, c.hidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("tokens", c.tokens, kMostTokens));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("feed_forward", c.feed_forward, 64 * kMostHidden));
  return CheckModelSize("vocabulary", c.vocabulary, kMostVocabulary);
}

int AddLinear(const CaseStudyConfig& c, const std::string& name, int input, int64_t out,
              Activation activation, ModelGraph* graph) {
  DenseSizes dense;
  dense.name = name;
  dense.input = input;
  dense.tokens = c.tokens;
  dense.in = graph->layers[input].output_shape[1];
  dense.out = out;
  dense.activation = activation;
  dense.stddev = kTransformerStddev;
  graph->layers.push_back(DenseSpec(dense));
  return LastLayer(*graph);
}

// Returns the branch's last layer.
int AddBranch(const CaseStudyConfig& c, int64_t branch, ModelGraph* graph) {
  const std::string prefix = absl::StrCat("branch", branch);
  GptEmbeddingSizes embedding;
  embedding.name = prefix + "/embedding";
  embedding.tokens = c.tokens;
  embedding.hidden = c.hidden;
  embedding.vocabulary = c.vocabulary;
  graph->layers.push_back(GptEmbeddingSpec(embedding));
  TransformerSizes sizes;
  sizes.tokens = c.tokens;
  sizes.hidden = c.hidden;
  sizes.heads = c.heads;
  sizes.residual_branches = c.repeats;
  int last = LastLayer(*graph);
  for (int64_t i = 0; i < c.repeats; ++i) {
    const std::string name = absl::StrCat(prefix, "/repeat", i);
    last = AddSelfAttention(sizes, name + "/attention", last, graph);
    last = AddLinear(c, name + "/linear0", last, c.feed_forward, Activation::kGelu, graph);
    last = AddLinear(c, name + "/linear1", last, c.hidden, Activation::kNone, graph);
  }
  return last;
}

}  // namespace

absl::StatusOr<ModelGraph> BuildCaseStudy(const CaseStudyConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckCaseStudy(c));
  ModelGraph graph;
  graph.name = "case_study";
  AddSizes join;
  join.name = "join";
  join.shape = {c.tokens, c.hidden};
  for (int64_t b = 0; b < c.branches; ++b) join.inputs.push_back(AddBranch(c, b, &graph));
  graph.layers.push_back(AddSpec(join));
  GptHeadSizes head;
  head.name = "head";
  head.input = LastLayer(graph);
  head.tokens = c.tokens;
  head.hidden = c.hidden;
  head.vocabulary = c.vocabulary;
  graph.layers.push_back(GptHeadSpec(head));
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  return graph;
}

}  // namespace pipelab
