// A GPT's operations as Megatron-LM launches them on GPUs (Narayanan et al. 2021, section 4.2, and
// its code of that time), for predictions of its measured runs: attention unfused or fused,
// dropout, bias gradients and the sums of micro-batches' gradients are kernels of their own, and
// some of the others are fused. It has costs, and no layer that runs.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, BuildGpt(config));
//   g = WithMegatronKernels(std::move(g));
//   ShareOf(g.layers[1], samples, TokenSlice(), {/*degree=*/8}).operations    // of one device
//
// Kernels that differ from those of the mathematics (models/graph/operation.h):
//   softmax    with scale and causal mask, fused: reads the half of the scores that is not masked,
//              writes all; its gradient reads that half twice
//   dropout    of the softmax, of the embedding and, fused with bias and residual, of each branch;
//              a mask is a byte a number
//   attention  unfused, or one fused kernel a pass, dropout included, which neither reads nor
//              writes scores: FlashAttention (Dao et al. 2022)
//   heads      unfused, the attention's output is copied to rows of tokens, the gradients of q, k
//              and v into one tensor
//   biases     those of the products into q, k, v are part of the product, the GELU's and the
//              branches' of what comes after; gradients are sums over rows
//   gradients  of each parameter are added to a buffer, a kernel a parameter
//   loss       in 4 bytes a number, two of half precision: fused, what is read and written once;
//              unfused, as without --cross-entropy-loss-fusion, a pass over the logits for each
//              line of its code: as single, the largest, without it, exponentials, their sum, the
//              softmax; its gradient times the loss's, and in half precision. Transformer Engine's
//              (--cross-entropy-fusion-impl te) reads the logits once for their sums and puts the
//              gradient in their place, all in half precision; backward scales it
//   parts      of a vocabulary as in the code of Yeung et al. (arXiv 2411.05288): a part makes its
//              own softmax at once, and its gradient scales that by the part's share; parts of an
//              embedding look all rows up, clear the others' and copy
//   slices     of tokens (Seq1F1B's code, arXiv 2406.03488), of fused attention: keys and values
//              are put behind those of the slices before by a copy, backward adds the gradients of
//              all keys up to the slice's, and each slice adds the gradients of all parameters
//   experts    router, permutations, grouped products and exchanges of Megatron-Core: what is
//              assumed is in megatron_experts.h
// Latent attention is fused always: two narrow products with a norm behind each, two wide ones, one
// kernel that turns q and one that makes the heads' keys and values.
// Layers without biases (Llama's) have no dropout and no sums for biases; rotary positions are a
// kernel of q and k in place, a gate one that reads both halves.
// Numbers are of half precision: a byte counts as half of one.
#ifndef PIPELAB_MODELS_SPECS_MEGATRON_KERNELS_H_
#define PIPELAB_MODELS_SPECS_MEGATRON_KERNELS_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

enum class AttentionImplementation : uint8_t { kUnfused, kFused };
enum class LossImplementation : uint8_t { kFused, kUnfused, kTransformerEngine };

// Every layer of the kinds gpt_embedding, gpt_attention (unfused_attention then, or still
// gpt_attention where fused), gpt_latent_attention, gpt_mlp, gpt_experts and gpt_head.
// Layers take slices as before, but unfused attention and experts, which take whole samples.
ModelGraph WithMegatronKernels(
    ModelGraph graph, AttentionImplementation attention = AttentionImplementation::kUnfused,
    LossImplementation loss = LossImplementation::kFused);

// The kernels of the head, where the graph has been given them.
absl::optional<LossImplementation> LossImplementationOf(const ModelGraph& graph);
// Every layer of the kinds vocabulary_embedding and vocabulary_shard (vocabulary_parts.h), and no
// other. A part keeps its softmax in 4 bytes a number.
ModelGraph WithMegatronVocabularyParts(ModelGraph graph, LossImplementation loss);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_MEGATRON_KERNELS_H_
