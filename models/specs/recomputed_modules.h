// Selective recomputation of named parts, as Megatron-LM's --recompute-modules has it: their
// outputs are let go in the forward and computed again in the backward. For predictions of
// published systems; it has costs, and no layer that runs.
//
//   ModelGraph g = WithMegatronActivations(WithMegatronKernels(*BuildGpt(c), kFused));
//   PIPELAB_ASSIGN_OR_RETURN(g, WithRecomputedModules(std::move(g), {"core_attn", "moe_act"}));
//
//   core_attn     attention between q, k, v and the output's product; fused attention keeps no
//                 scores, so that time goes and no memory comes
//   layernorm     the norms in front of the branches: their outputs
//   mla_up_proj   of latent attention, what makes q, k and v of the latent rows: q, k and v
//   mlp, moe      a dense branch's feed-forward, or that with experts: all that it keeps; what a
//                 tensor-parallel group exchanges in its forward comes again
//   moe_act       of experts, the activation between the products: its output
//   every_second_product
//                 torchtitan's selective recomputation of operations, of dense blocks: of products
//                 in their order q, k, v, output, gate, up, down it does k, output and up again, with
//                 norms, rotary positions, the gate, and gathers of rows; q, v, attention and the
//                 gate's input are kept
//
// A name of a part that the model does not have changes nothing, as there.
#ifndef PIPELAB_MODELS_SPECS_RECOMPUTED_MODULES_H_
#define PIPELAB_MODELS_SPECS_RECOMPUTED_MODULES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "models/specs/kept_activations.h"

namespace pipelab {

// `graph` has Megatron-LM's kernels, attention fused, and its activations with these inputs of
// products. InvalidArgument for another name.
absl::StatusOr<ModelGraph> WithRecomputedModules(
    ModelGraph graph, const std::vector<std::string>& modules,
    ProductInputs inputs = ProductInputs::kAsActivations);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_RECOMPUTED_MODULES_H_
