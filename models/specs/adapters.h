// Low-rank adapters (LoRA, Hu et al., arXiv 2106.09685) beside the products of a language model's
// blocks, and nothing else trained: y = x w + (x a) b, with a [in, rank] and b [rank, out]. For
// predictions of published systems; it has costs, and no layer that runs.
//
//   ModelGraph g = WithAdapters(MegatronGraph(...), {/*rank=*/16});
//   g.num_parameters();       // of the adapters alone
//
// Frozen products have no weight gradients; input gradients pass through them. Frozen parameters
// are neither reduced, stepped nor sharded, so they are no parameters of this graph: its state is
// the adapters', and whoever asks for memory adds the frozen weights. An adapter's gradients read
// its product's input; a feed-forward without adapters keeps no inputs of products. Of a
// tensor-parallel group, a device has the part of an adapter that belongs to its part of the
// product.
#ifndef PIPELAB_MODELS_SPECS_ADAPTERS_H_
#define PIPELAB_MODELS_SPECS_ADAPTERS_H_

#include <cstdint>

#include "models/graph/layer_spec.h"
#include "models/specs/kept_activations.h"

namespace pipelab {

struct Adapters {
  int64_t rank = 0;
  // Beside the product of queries, keys and values alone, or beside all of a block's.
  bool all_products = false;
  ProductInputs inputs = ProductInputs::kAsActivations;  // as they are kept without adapters
};

// `graph` has Megatron-LM's activations. Of the kinds gpt_attention, unfused_attention and gpt_mlp.
ModelGraph WithAdapters(ModelGraph graph, const Adapters& adapters);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_ADAPTERS_H_
