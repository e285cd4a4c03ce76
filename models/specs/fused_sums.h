// Transformer Engine's products add a weight's gradient to Megatron-LM's sums in 4 bytes
// themselves, so no kernel of its own does (gradient_accumulation_fusion, on by default). PyTorch's
// autograd must still be given a gradient: a buffer that nobody reads, one for each shape of
// weights on a device, for as long as the device runs (get_dummy_wgrad in
// transformer_engine/pytorch/module/base.py).
//
//   graph = WithFusedSums(MegatronGraph(std::move(graph), AttentionImplementation::kFused, type));
//
// A buffer has the numbers of activations. Its bytes count where gradients are summed apart from
// the weights (StateNumbers::cast is false).
#ifndef PIPELAB_MODELS_SPECS_FUSED_SUMS_H_
#define PIPELAB_MODELS_SPECS_FUSED_SUMS_H_

#include "models/graph/layer_spec.h"

namespace pipelab {

// Shapes beyond so many have no buffer.
inline constexpr int kMostGradientBuffers = 64;

// The weights of products in the kinds gpt_attention, gpt_latent_attention, gpt_mlp, gpt_experts
// and further_token have buffers. Routers, embeddings and heads are not Transformer Engine's; the
// products of routers and heads add to sums all the same (Megatron-LM's
// LinearWithGradAccumulationAndAsyncCommunication), and a head's leaves a gradient of its own that
// nobody reads until its pass is over. The graph must have Megatron-LM's kernels.
ModelGraph WithFusedSums(ModelGraph graph);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_FUSED_SUMS_H_
