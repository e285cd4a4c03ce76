#include "models/zoo/vit.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/specs/classifier_spec.h"
#include "models/specs/norm_spec.h"
#include "models/specs/patch_embedding_spec.h"
#include "models/specs/pool_spec.h"
#include "models/zoo/size_check.h"
#include "models/zoo/transformer_blocks.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status CheckVit(const VitConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("layers", c.layers, kMostLayers));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("hidden", c.hidden, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckHeads(c.heads, c.hidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("side", c.side, kMostImageSide));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("channels", c.channels, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("classes", c.classes, kMostVocabulary));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("patch", c.patch, c.side));
  if (c.feed_forward != 0) {
    PIPELAB_RETURN_IF_ERROR(CheckModelSize("feed_forward", c.feed_forward, 64 * kMostHidden));
  }
  if (c.side % c.patch == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("patch=", c.patch, " must divide the image's side of ", c.side));
}

// Norm, class token or mean, classifier.
void AddVitHead(const VitConfig& c, int input, ModelGraph* graph) {
  NormSizes norm;
  norm.name = "norm";
  norm.input = input;
  norm.tokens = c.tokens();
  norm.hidden = c.hidden;
  graph->layers.push_back(NormSpec(norm));
  graph->layers.push_back(
      PoolSpec(c.class_token ? FirstRow("class", input + 1, c.tokens(), c.hidden)
                             : GlobalAverage("mean", input + 1, c.tokens(), 1, c.hidden)));
  ClassifierSizes head{"classifier", input + 2, 1, c.hidden};
  head.classes = c.classes;
  graph->layers.push_back(ClassifierSpec(head));
}

}  // namespace

VitConfig VitS4() {
  VitConfig c;
  c.layers = 12;
  c.hidden = 384;
  c.heads = 6;
  c.patch = 4;
  return c;
}

VitConfig VitB16() {
  VitConfig c;
  c.layers = 12;
  c.hidden = 768;
  c.heads = 12;
  c.patch = 16;
  c.side = 224;
  c.classes = 1000;
  c.class_token = c.exact_gelu = true;
  return c;
}

absl::StatusOr<GroupedModel> BuildVit(const VitConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckVit(c));
  GroupedModel model;
  ModelGraph& graph = model.graph;
  graph.name = "vit";
  PatchEmbeddingSizes patches;
  patches.name = "patches";
  patches.height = patches.width = c.side;
  patches.channels = c.channels;
  patches.patch = c.patch;
  patches.hidden = c.hidden;
  patches.class_token = c.class_token;
  graph.layers.push_back(PatchEmbeddingSpec(patches));
  model.group_of_layer.push_back(0);
  TransformerSizes sizes;
  sizes.tokens = c.tokens();
  sizes.hidden = c.hidden;
  sizes.heads = c.heads;
  sizes.feed_forward = c.feed_forward == 0 ? 4 * c.hidden : c.feed_forward;
  sizes.residual_branches = 2 * c.layers;
  sizes.exact_gelu = c.exact_gelu;
  sizes.causal = false;
  int last = 0;
  for (int block = 0; block < c.layers; ++block) {
    const std::string name = absl::StrCat("block", block);
    last = AddSelfAttention(sizes, name + "/attention", last, &graph);
    last = AddFeedForward(sizes, name + "/mlp", last, &graph);
    model.group_of_layer.resize(graph.layers.size(), block + 1);
  }
  AddVitHead(c, last, &graph);
  model.group_of_layer.resize(graph.layers.size(), static_cast<int>(c.layers) + 1);
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  return model;
}

}  // namespace pipelab
