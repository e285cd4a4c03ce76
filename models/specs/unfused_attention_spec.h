// Attention as frameworks computed it before fused kernels (Dao et al., FlashAttention, 2022): the
// scores of every head exist in memory, and their softmax is kept for the backward. For planners
// that predict older systems; it has costs, and no layer that runs.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, BuildGpt(config));
//   g = WithUnfusedAttention(std::move(g));
//
// A causal mask or a window saves nothing: all pairs of tokens are computed. The backward has four
// products where a fused kernel, which keeps no softmax, has five.
#ifndef PIPELAB_MODELS_SPECS_UNFUSED_ATTENTION_SPEC_H_
#define PIPELAB_MODELS_SPECS_UNFUSED_ATTENTION_SPEC_H_

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kUnfusedAttention[] = "unfused_attention";

// Every layer of the kind gpt_attention (gpt_attention_spec.h) in its unfused form. Token slices
// are not known to it.
ModelGraph WithUnfusedAttention(ModelGraph graph);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_UNFUSED_ATTENTION_SPEC_H_
