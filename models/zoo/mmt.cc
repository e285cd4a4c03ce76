#include "models/zoo/mmt.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "models/specs/classifier_spec.h"
#include "models/specs/concat_spec.h"
#include "models/specs/dense_spec.h"
#include "models/specs/gpt_embedding_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/norm_spec.h"
#include "models/specs/patch_embedding_spec.h"
#include "models/specs/pool_spec.h"
#include "models/zoo/branch_stages.h"
#include "models/zoo/feature_branches.h"
#include "models/zoo/size_check.h"
#include "models/zoo/transformer_blocks.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status CheckModality(const MmtModality& m) {
  if (m.field.empty()) {
    return absl::InvalidArgumentError("--modalities: a branch names no field of the data");
  }
  if (m.kind == MmtModality::kText) {
    PIPELAB_RETURN_IF_ERROR(CheckModelSize("tokens", m.tokens, kMostTokens));
    return CheckModelSize("vocabulary", m.vocabulary, kMostVocabulary);
  }
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("height", m.height, kMostImageSide));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("width", m.width, kMostImageSide));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("channels", m.channels, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("patch", m.patch, kMostImageSide));
  if (m.height % m.patch == 0 && m.width % m.patch == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--patch=", m.patch, ": must divide --height=", m.height, " and --width=", m.width));
}

// Branches over one text.
absl::Status CheckTokens(const MmtConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("branches", c.branches, kMostBranches));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("tokens", c.tokens, kMostTokens));
  return CheckModelSize("vocabulary", c.vocabulary, kMostVocabulary);
}

absl::Status CheckModalities(const MmtConfig& c) {
  if (c.branches != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--branches=", c.branches, ": must be 0 with ",
                                                   c.modalities.size(), " modalities"));
  }
  PIPELAB_RETURN_IF_ERROR(
      CheckModelSize("modalities", static_cast<int64_t>(c.modalities.size()), kMostBranches));
  for (const MmtModality& m : c.modalities) PIPELAB_RETURN_IF_ERROR(CheckModality(m));
  return CheckModelSize("classes", c.classes, kMostVocabulary);
}

absl::Status CheckMmt(const MmtConfig& c) {
  PIPELAB_RETURN_IF_ERROR(c.modalities.empty() ? CheckTokens(c) : CheckModalities(c));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("layers", c.layers, kMostLayers));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("hidden", c.hidden, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckHeads(c.heads, c.hidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("feed_forward", c.feed_forward, 64 * kMostHidden));
  return CheckDropout(c.dropout);
}

// Embedding, Transformer layers, and with modalities norm and mean.
int64_t LayersOfBranch(const MmtConfig& c) {
  return 1 + 2 * c.layers + (c.modalities.empty() ? 0 : 2);
}

class MmtBuilder {
 public:
  explicit MmtBuilder(const MmtConfig& config) : c_(config) { graph_.name = "mmt"; }

  absl::StatusOr<ModelGraph> Build() {
    if (c_.modalities.empty()) {
      BuildOverTokens();
    } else {
      graph_.name = "mmt_modalities";
      BuildOverModalities();
    }
    PIPELAB_RETURN_IF_ERROR(Validate(graph_));
    return std::move(graph_);
  }

 private:
  int Add(LayerSpec layer) {
    graph_.layers.push_back(std::move(layer));
    return LastLayer(graph_);
  }

  void BuildOverTokens() {
    std::vector<int> ends;
    for (int64_t b = 0; b < c_.branches; ++b) {
      const std::string name = absl::StrCat("branch", b);
      const int embedded = Embed(name, kTokens, c_.tokens, c_.vocabulary);
      ends.push_back(AddBlocks(name, embedded, c_.tokens, /*causal=*/true, ""));
    }
    GptHeadSizes head;
    head.name = "head";
    head.input = Join(ends, c_.tokens);
    head.tokens = c_.tokens;
    head.hidden = c_.hidden;
    head.vocabulary = c_.vocabulary;
    head.stddev = kTransformerStddev;
    Add(GptHeadSpec(head));
  }

  void BuildOverModalities() {
    std::vector<int> ends;
    for (const MmtModality& m : c_.modalities) {
      ends.push_back(AddModality(absl::StrCat("branch", ends.size()), m));
    }
    ClassifierSizes head;
    head.name = "head";
    head.input = Join(ends, /*tokens=*/1);
    head.channels = c_.hidden;
    head.classes = c_.classes;
    head.stddev = kTransformerStddev;
    Add(ClassifierSpec(head));
  }

  int Embed(const std::string& branch, const std::string& field, int64_t tokens,
            int64_t vocabulary) {
    GptEmbeddingSizes s;
    s.name = branch + "/embedding";
    s.field = field;
    s.tokens = tokens;
    s.hidden = c_.hidden;
    s.vocabulary = vocabulary;
    s.stddev = kTransformerStddev;
    return Add(GptEmbeddingSpec(s));
  }

  int EmbedPatches(const std::string& branch, const MmtModality& m) {
    PatchEmbeddingSizes s;
    s.name = branch + "/embedding";
    s.field = m.field;
    s.height = m.height;
    s.width = m.width;
    s.channels = m.channels;
    s.patch = m.patch;
    s.hidden = c_.hidden;
    s.position_stddev = kTransformerStddev;
    return Add(PatchEmbeddingSpec(s));
  }

  int AddBlocks(const std::string& branch, int last, int64_t tokens, bool causal,
                const std::string& key_lengths) {
    TransformerSizes sizes;
    sizes.tokens = tokens;
    sizes.hidden = c_.hidden;
    sizes.heads = c_.heads;
    sizes.feed_forward = c_.feed_forward;
    sizes.dropout = c_.dropout;
    sizes.residual_branches = 2 * c_.layers;
    sizes.causal = causal;
    sizes.key_lengths = key_lengths;
    for (int64_t i = 0; i < c_.layers; ++i) {
      const std::string name = absl::StrCat(branch, "/block", i);
      last = AddSelfAttention(sizes, name + "/attention", last, &graph_);
      last = AddFeedForward(sizes, name + "/mlp", last, &graph_);
    }
    return last;
  }

  // Ends with one row of a sample.
  int AddModality(const std::string& branch, const MmtModality& m) {
    const int embedded = m.kind == MmtModality::kText
                             ? Embed(branch, m.field, m.tokens, m.vocabulary)
                             : EmbedPatches(branch, m);
    const int64_t tokens = graph_.layers[embedded].output_shape[0];
    NormSizes norm;
    norm.name = branch + "/norm";
    norm.input = AddBlocks(branch, embedded, tokens, /*causal=*/false, m.length_field);
    norm.tokens = tokens;
    norm.hidden = c_.hidden;
    const int normed = Add(NormSpec(norm));
    return Add(PoolSpec(GlobalAverage(branch + "/mean", normed, tokens, 1, c_.hidden)));
  }

  int Join(const std::vector<int>& branches, int64_t tokens) {
    ConcatSizes concat;
    concat.name = "join/concat";
    concat.tokens = tokens;
    concat.inputs = branches;
    concat.widths.assign(branches.size(), c_.hidden);
    DenseSizes dense;
    dense.name = "join/dense";
    dense.input = Add(ConcatSpec(concat));
    dense.tokens = tokens;
    dense.in = static_cast<int64_t>(branches.size()) * c_.hidden;
    dense.out = c_.hidden;
    dense.stddev = kTransformerStddev;
    return Add(DenseSpec(dense));
  }

  const MmtConfig& c_;
  ModelGraph graph_;
};

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
  PIPELAB_RETURN_IF_ERROR(CheckMmt(c));
  return MmtBuilder(c).Build();
}

absl::StatusOr<std::vector<int>> MmtParallelStages(const MmtConfig& c, int stages_of_branch) {
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, BuildMmt(c));
  const int64_t layers = LayersOfBranch(c);
  if (stages_of_branch < 1 || stages_of_branch > layers) {
    return absl::InvalidArgumentError(
        absl::StrCat("a branch of ", layers, " layers in ", stages_of_branch, " stages"));
  }
  return BranchStages(graph, stages_of_branch);
}

}  // namespace pipelab
