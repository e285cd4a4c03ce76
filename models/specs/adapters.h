// Low-rank adapters (LoRA, Hu et al., arXiv 2106.09685) beside the products of a language model's
// blocks, and nothing else trained: y = x w + (x a) b, with a [in, rank] and b [rank, out]. For
// predictions of published systems; it has costs, and no layer that runs.
//
//   ModelGraph g = WithAdapters(MegatronGraph(...), /*rank=*/32);
//   g.num_parameters();       // of the adapters alone
//
// Frozen products have no weight gradients; input gradients pass through them. Frozen parameters
// are neither reduced, stepped nor sharded, so they are no parameters of this graph: its state is
// the adapters', and whoever asks for memory adds the frozen weights. Inputs of products stay, as
// the adapters' own gradients read them. Of a tensor-parallel group, a device has the part of an
// adapter that belongs to its part of the product.
#ifndef PIPELAB_MODELS_SPECS_ADAPTERS_H_
#define PIPELAB_MODELS_SPECS_ADAPTERS_H_

#include <cstdint>

#include "models/graph/layer_spec.h"

namespace pipelab {

// Beside all products of the kinds gpt_attention, unfused_attention and gpt_mlp.
ModelGraph WithAdapters(ModelGraph graph, int64_t rank);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_ADAPTERS_H_
