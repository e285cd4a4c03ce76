// What a Transformer's layers keep for the backward where they are not ours: as Megatron-LM has it,
// and with its selective recomputation. For predictions of published systems; it has costs, and no
// layer that runs.
//
//   ModelGraph g = WithMegatronKernels(*BuildGpt(config));       // attention with scores in memory
//   g = WithMegatronActivations(std::move(g));
//   g = WithSelectiveRecompute(std::move(g));
//
// Bytes of a block at 2 a number, for s tokens, b samples, h hidden, a heads, T devices
// (Korthikanti et al., "Reducing activation recomputation in large Transformer models", 2022,
// section 4):
//
//                   no tensor parallelism  T devices                     and sequence parallel
//   Megatron-LM     34 sbh + 5 a s^2 b     sbh (10 + 24/T) + 5 a s^2 b/T (34 sbh + 5 a s^2 b)/T
//   selective       34 sbh                 sbh (10 + 24/T)               34 sbh/T
//   ours, fused     20 sbh                 sbh (4 + 16/T)                20 sbh/T
//
// Ours keep less because they compute norms, GELU and dropout's masks again, and attention's scores
// block by block (Dao et al. 2022). Without dropout the 3 a s^2 b of dropped scores are not there;
// nor are the masks (2 sbh) of a model without biases, where no fused kernel keeps them.
#ifndef PIPELAB_MODELS_SPECS_KEPT_ACTIVATIONS_H_
#define PIPELAB_MODELS_SPECS_KEPT_ACTIVATIONS_H_

#include <cstdint>

#include "models/graph/layer_spec.h"

namespace pipelab {

// Every layer of the kinds gpt_attention, unfused_attention, gpt_latent_attention and gpt_mlp keeps
// what Megatron-LM keeps: the norms' outputs, the GELU's, and bytes of masks; of unfused attention
// also the dropped scores and their mask. The kind gpt_experts keeps the rows that routed experts
// take, what goes into all second products, and logits and probabilities of the router in float32.
// The kind gpt_head keeps the softmax of the logits in 4 bytes a number, but with Transformer
// Engine's loss, which puts their gradient in their place.
// A token slice of fused attention keeps its q, k and v, and its keys and values once more behind
// those of the slices before, as in Seq1F1B's code (arXiv 2406.03488). Gradients of keys and values
// are there for whole samples from the last slice's backward to the first one's.
// Under fp8 the inputs of products are kept as they were cast, in half the bytes (Transformer
// Engine).
enum class ProductInputs : uint8_t { kAsActivations, kHalfAsWide };
ModelGraph WithMegatronActivations(ModelGraph graph,
                                   ProductInputs inputs = ProductInputs::kAsActivations);

// Every layer of the kind unfused_attention lets its scores go and computes them again in the
// backward: products, softmax and dropout of the forward, and nothing else. Fused attention keeps
// no scores and stays as it is.
ModelGraph WithSelectiveRecompute(ModelGraph graph);
// Whether that changes anything: what a search may vary.
bool AllowsSelectiveRecompute(const ModelGraph& graph);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_KEPT_ACTIVATIONS_H_
