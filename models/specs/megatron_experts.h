// What a layer with experts asks of a device where Megatron-Core runs it (transformer/moe, with its
// token dispatcher "alltoall" and grouped products). Private to megatron_kernels.
//
// Assumed, on top of what megatron_kernels.h says:
//   router      a product of the device's own rows, then softmax or sigmoid, choice and its map in
//               float32, one kernel for each of PyTorch's operations (moe_utils.py,
//               topk_routing_with_score_function, without fusion, which is its default)
//   permute     a copy of each chosen row to its expert; before the products and after them one
//               more that sorts the rows by expert, where they come from several devices. Rows that
//               go once to each node are taken from where they lie, and summed on the way back, by
//               the exchange's own kernels (DeepEP), so that only the sorting is left
//   weights     are applied by the gate's kernel, so that no expert's output is kept
//   products    one grouped kernel for all experts of the device, of an even load, whose weight
//               gradients are added to float32 sums within it
//   counts      where each chosen row goes by itself: how many rows go where is seven small
//               kernels, five copies to the host and a gather over the devices; the rows' weights
//               have an exchange of their own, and so do their gradients (token_dispatcher.py,
//               "alltoall")
//   shared      experts are a feed-forward of their own, beside nothing
//   exchange    of rows in the activations' type, two forward and two backward. Where a tensor-
//               parallel group splits each expert, a device sends its own rows, and the group
//               gathers what has come
#ifndef PIPELAB_MODELS_SPECS_MEGATRON_EXPERTS_H_
#define PIPELAB_MODELS_SPECS_MEGATRON_EXPERTS_H_

#include <cstdint>

#include "models/graph/layer_spec.h"

namespace pipelab {

struct MegatronExperts {
  int64_t tokens, hidden, inner, experts, chosen, shared;
  bool sigmoid = false, biases = false;

  // Makes one for a gpt_experts layer.
  static MegatronExperts Of(const LayerSpec& layer);

  // Between the branch's norm and its sum with the residual.
  void AddOperations(int64_t samples, TensorParallel split, LayerOperations* operations) const;
  void AddCounts(LayerOperations* operations) const;
  void AddChoice(int64_t rows, LayerOperations* operations) const;
  // Four bytes a number.
  TensorCollectives Collectives(int64_t samples, TensorParallel split) const;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_MEGATRON_EXPERTS_H_
