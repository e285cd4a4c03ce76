// A multi-modal Transformer (MMT): parallel branches of Transformer layers, joined at the end. The
// branched model of GraphPipe (Jeon et al., ASPLOS 2025); its sizes are PublishedMmt().
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, BuildMmt({.branches = 2, .layers = 4, .hidden = 128,
//                                                    .heads = 4, .tokens = 64,
//                                                    .feed_forward = 512, .vocabulary = 96}));
//
// Layers, branch after branch: an embedding, then attention and MLP for each Transformer layer;
// then the join: the branches side by side (concat), brought to the width of one (dense); then
// the head.
//
// Without modalities each branch embeds the same tokens with tables of its own: one text stands for
// the modalities, as nothing is published of them. Attention is causal and the task is the next
// token, as in zoo/gpt.h.
//
// With modalities, branches read texts and pictures, and the task is a class of the sample:
//
//   MmtModality text, picture;
//   text.field = "text";  text.length_field = "text_length";
//   text.tokens = 24;  text.vocabulary = 3000;
//   picture.kind = MmtModality::kPicture;  picture.height = picture.width = 32;
//   picture.channels = 3;  picture.patch = 4;                        // 64 patches
//   config.modalities = {text, picture};  config.classes = 9;
//
// Attention is over all tokens, or a text's first `length_field`. A branch ends with a norm and the
// mean of its tokens (places of the padding too, which attend like the others); the join is of
// these means, and the head a classifier. Join and head are linear, so the branches' votes for a
// class add up. One modality is a chain with the same join and head: the model of one branch alone.
#ifndef PIPELAB_MODELS_ZOO_MMT_H_
#define PIPELAB_MODELS_ZOO_MMT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

// What one branch reads.
struct MmtModality {
  enum Kind : uint8_t { kText, kPicture };
  Kind kind = kText;
  std::string field;  // of the data: ids, or floats [height, width, channels]
  // Texts.
  std::string length_field;  // ids [1]: tokens of a sample that are not padding; empty: all
  int64_t tokens = 0, vocabulary = 0;
  // Pictures, cut into squares of `patch` pixels a side.
  int64_t height = 0, width = 0, channels = 0, patch = 0;
};

struct MmtConfig {
  int64_t branches = 0;  // of the same text; 0 with modalities
  int64_t layers = 0;    // Transformer layers of a branch
  int64_t hidden = 0, heads = 0;
  int64_t tokens = 0;  // of a sample (sequence length)
  int64_t feed_forward = 0;
  int64_t vocabulary = 0;
  double dropout = 0;  // of the residual branches, [0, 1)
  // One branch each, in the place of `branches`, `tokens` and `vocabulary`.
  std::vector<MmtModality> modalities;
  int64_t classes = 0;  // with modalities: of the head
};

// 4 branches of 8 layers, sequence 256, hidden 1024, 16 heads, feed-forward 4096 (the paper's); a
// vocabulary of 32000 (not published).
MmtConfig PublishedMmt();

// InvalidArgument names the field as an option, and its value: "--branches=0: must be from 1 to
// 64".
absl::StatusOr<ModelGraph> BuildMmt(const MmtConfig& config);

// The stage of each layer in GraphPipe's parallel stages: BranchStages (branch_stages.h).
// InvalidArgument when a branch has fewer layers.
absl::StatusOr<std::vector<int>> MmtParallelStages(const MmtConfig& config, int stages_of_branch);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_MMT_H_
