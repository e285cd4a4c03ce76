// Selective recomputation of named parts, as Megatron-LM's --recompute-modules has it: their
// outputs are let go in the forward and computed again in the backward. For predictions of
// published systems; it has costs, and no layer that runs.
//
//   ModelGraph g = WithMegatronActivations(WithMegatronKernels(*BuildGpt(c), kFused));
//   PIPELAB_ASSIGN_OR_RETURN(g, WithRecomputedModules(std::move(g), {"core_attn", "moe_act"}));
//
//   core_attn     attention between q, k, v and the output's product; fused attention keeps no
//                 scores, so that time goes and no memory comes (unfused: WithSelectiveRecompute)
//   layernorm     the norms in front of the branches: their outputs
//   mla_up_proj   of latent attention, what makes q, k and v of the latent rows: q, k and v
//   mlp, moe      a dense branch's feed-forward, or that with experts: all that it keeps; what a
//                 tensor-parallel group exchanges in its forward comes again
//   moe_act       of experts, the activation between the products: its output
//   shared_experts
//                 the feed-forward that all tokens take: what is between its input and its output
//   every_second_product
//                 torchtitan's selective recomputation of operations: of products in their order
//                 q, k, v, output, gate, up, down it does k, output and up again, with norms,
//                 rotary positions, the gate, and gathers of rows; q, v, attention and the gate's
//                 input are kept. Latent attention does its wide products again where q has a
//                 narrow one, else the narrow one and the output's. Grouped products of experts,
//                 their router and permutations come again; rows that were exchanged are kept
//
// A module that the model does not have changes nothing, as in Megatron-LM. A branch that is
// rebuilt as a whole (mlp, moe) has no part that is rebuilt once more.
#ifndef PIPELAB_MODELS_SPECS_RECOMPUTED_MODULES_H_
#define PIPELAB_MODELS_SPECS_RECOMPUTED_MODULES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph/layer_spec.h"
#include "models/specs/kept_activations.h"

namespace pipelab {

// In this order.
std::vector<absl::string_view> RecomputedModuleNames();

// `graph` has Megatron-LM's kernels and its activations with these inputs of products.
// InvalidArgument for another name.
absl::StatusOr<ModelGraph> WithRecomputedModules(
    ModelGraph graph, const std::vector<std::string>& modules,
    ProductInputs inputs = ProductInputs::kAsActivations);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_RECOMPUTED_MODULES_H_
