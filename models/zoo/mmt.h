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
// Each branch embeds the same tokens with tables of its own: one text stands for the modalities.
// Attention is causal and the task is the next token, as in zoo/gpt.h.
#ifndef PIPELAB_MODELS_ZOO_MMT_H_
#define PIPELAB_MODELS_ZOO_MMT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

struct MmtConfig {
  int64_t branches = 0;
  int64_t layers = 0;  // Transformer layers of a branch
  int64_t hidden = 0, heads = 0;
  int64_t tokens = 0;  // of a sample (sequence length)
  int64_t feed_forward = 0;
  int64_t vocabulary = 0;
  double dropout = 0;  // of the residual branches, [0, 1)
};

// 4 branches of 8 layers, sequence 256, hidden 1024, 16 heads, feed-forward 4096 (the paper's); a
// vocabulary of 32000 (not published).
MmtConfig PublishedMmt();

// InvalidArgument names the field as an option, and its value: "--branches=0: must be from 1 to
// 64".
absl::StatusOr<ModelGraph> BuildMmt(const MmtConfig& config);

// The stage of each layer in GraphPipe's parallel stages: each branch in `stages_of_branch` stages,
// as even in layers as can be, then one stage of join and head. Numbered side by side: stage k of
// all branches comes before stage k + 1 of any. InvalidArgument when a branch has fewer layers.
absl::StatusOr<std::vector<int>> MmtParallelStages(const MmtConfig& config, int stages_of_branch);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_MMT_H_
