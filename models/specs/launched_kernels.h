// What some systems launch besides the kernels of megatron_kernels.h, as operations of the layers
// that have them. Each is counted from public code; numbers are of half precision.
//
//   graph = WithFp8Casts(WithMegatronKernels(std::move(graph), AttentionImplementation::kFused));
#ifndef PIPELAB_MODELS_SPECS_LAUNCHED_KERNELS_H_
#define PIPELAB_MODELS_SPECS_LAUNCHED_KERNELS_H_

#include "models/graph/layer_spec.h"

namespace pipelab {

// Products of 1 byte a number (Transformer Engine): the input of each is cast forward, and the
// gradient of its output backward, once as it is and once transposed, for the weight gradient: read
// in 2 bytes, written in 1 twice. A norm writes its output so itself, and with sequence
// parallelism gradients are cast before they are gathered. Weights are cast once a step,
// which is not counted, nor are scales and what finds them. The head and the routers of experts
// stay in 2 bytes, as in Megatron-Core (Operation::half). Their layers must have Megatron-LM's
// kernels.
ModelGraph WithFp8Casts(ModelGraph graph);

// PyTorch's own operations, one kernel each, where Megatron-LM fuses (nanotron's models/llama.py
// and parallel/tensor_parallel/functional.py). SiLU and the product with it are two, and the output
// of SiLU is kept too. The loss is a cast of the logits to 4 bytes, maximum, difference,
// exponential, sum and quotient, backward a product and a cast. For an instant there are two
// tensors of logits in 4 bytes. In front of attention q, k and v are copied by head, then k and v
// twice more. What it keeps of q is a view of the first copy, so that k and v stay twice. That is
// where q has as many heads as k and v. Each micro-batch's gradients are added to sums of 4 bytes,
// a kernel a parameter (optim/gradient_accumulator.py).
ModelGraph WithEagerKernels(ModelGraph graph);

// The sum of a column's input gradient, over the devices of tensor parallelism, runs beside its
// weight gradient (nanotron's tp_linear_async_communication in REDUCE_SCATTER mode, which adapts
// Megatron-LM's LinearWithGradAccumulationAndAsyncCommunication).
ModelGraph WithSumsBesideWeights(ModelGraph graph);

// Biases of the experts' second products, added expert by expert with the rows' weights, in 4 bytes
// a number (Megatron-Core's transformer/moe/experts.py, _apply_bias). Those of the first ones are
// part of the gate's kernel.
ModelGraph WithExpertBiases(ModelGraph graph);

// Releases of Megatron-Core launch some kernels otherwise than megatron_kernels.h has it.
struct LaunchedKernels {
  // Modules that CUDA graphs launch (cuda_graph_scope). The host launches nothing of theirs.
  bool graphed_attention = false;     // attn: attention with its norm
  bool graphed_feed_forward = false;  // mlp: feed-forwards without experts
  bool graphed_routers = false;       // moe_router and moe_preprocess: norm, router
  bool graphed_experts = false;       // moe: all of a layer with experts
  bool graphed_step = false;          // full_iteration: all layers, with their collectives
  // One kernel reads the scores and writes weights and a map of bytes, and one is its gradient
  // (moe_router_fusion; Transformer Engine's fused router).
  bool fused_routers = false;
  // The routed experts' gate and the cast behind it are part of the products before them, forward
  // and backward (use_transformer_engine_op_fuser with NVTE_CUTEDSL_FUSED_GROUPED_MLP). For graphs
  // with fp8's casts alone.
  bool fused_experts = false;
  // PyTorch's deterministic algorithms fill what is allocated (torch.utils.deterministic.
  // fill_uninitialized_memory, on by default), so outputs of Transformer Engine's products,
  // attention and norms are written once more. Those of PyTorch's own kernels are not filled.
  bool filled_outputs = false;
};
struct GraphedModule {
  const char* name;  // as cuda_graph_scope has it
  bool LaunchedKernels::*graphed;
};
inline constexpr GraphedModule kGraphedModules[] = {
    {"attn", &LaunchedKernels::graphed_attention},
    {"mlp", &LaunchedKernels::graphed_feed_forward},
    {"moe", &LaunchedKernels::graphed_experts},
    {"moe_router", &LaunchedKernels::graphed_routers},
    {"full_iteration", &LaunchedKernels::graphed_step}};
ModelGraph WithLaunchedKernels(ModelGraph graph, const LaunchedKernels& kernels);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_LAUNCHED_KERNELS_H_
