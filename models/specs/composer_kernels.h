// What llm-foundry's MPT launches under Composer in place of Megatron-LM's kernels:
//
//   graph = WithMegatronKernels(std::move(graph), AttentionImplementation::kFused);
//   graph = WithComposerKernels(std::move(graph));
//
// From public code; numbers are of half precision.
//   dropout   is zero, and no kernel applies it: a branch's end is a sum (llm-foundry's
//             models/layers/blocks.py).
//   loss      FlashAttention's cross entropy, which reads the logits forward, and backward reads
//             them and writes their gradient (models/mpt/modeling_mpt.py, fused_crossentropy).
//   metrics   of training, on by default: cross entropy and perplexity of each micro-batch, behind
//             its backward: each a cast of the logits to 4 bytes and a log-softmax of them
//             (Composer's metrics/nlp.py and trainer/trainer.py).
//   sums      of gradients are of parts of parameters, since FSDP divides each micro-batch's.
//             Before it does, those of a block's weights, which are parts of one tensor, are put
//             together by a copy (torch.split's gradient; PyTorch's _flat_param.py).
//
// The model must have Megatron-LM's kernels.
#ifndef PIPELAB_MODELS_SPECS_COMPOSER_KERNELS_H_
#define PIPELAB_MODELS_SPECS_COMPOSER_KERNELS_H_

#include "models/graph/layer_spec.h"

namespace pipelab {

ModelGraph WithComposerKernels(ModelGraph graph);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_COMPOSER_KERNELS_H_
