// The part of attention that depends on how its keys and values come together, where devices have
// parts of each sample's tokens (models/graph/context_part.h) and where they have all: pairs of
// queries and keys, memory, messages. models/layers/parted_attention.h runs it.
//
//   ContextAttention a = ...;                       // of one device
//   costs.backward_input_peak = beside + a.Memory().backward;
//   a.Collectives().forward;                        // LayerSplit::context_collectives
//
// Gathered (Llama 3), the keys and values of all tokens come at once, and each of the device's
// chunks is a call of the kernel with all of them. Round the ring (context_ring.h) each pair of a
// chunk of queries and a chunk of keys is one, and what it gives is merged with what was there;
// the exchange runs beside: a step takes as long as its attention or its hop, whichever is longer.
//
// By heads (DeepSpeed Ulysses) each device attends over whole samples with 1/C of its heads, as one
// that is alone does. Queries, keys and values stay as they came until the backward, and so does
// the output, beside its tokens of all heads, which the next product takes: Transformer Engine
// keeps both since 2.8. So backward an all-to-all brings the output's gradient alone. Transformer
// Engine exchanges queries, keys and values in three calls, which are one here where they are one
// tensor: the latencies of two are left out.
//
// Latent attention's keys and values go whole, not as the narrow rows that they are made of: so do
// Megatron-Core and Transformer Engine, whose context parallelism is in the attention kernel. Rows
// of a latent would be some 70 times shorter (DeepSeek-V3: 576 numbers a token instead of 40960),
// and each device would then repeat the up product, forward and backward, for all tokens.
#ifndef PIPELAB_MODELS_SPECS_CONTEXT_ATTENTION_SPEC_H_
#define PIPELAB_MODELS_SPECS_CONTEXT_ATTENTION_SPEC_H_

#include <cstdint>

#include "models/graph/layer_spec.h"

namespace pipelab {

// What a pass holds at most beside q, k, v, the attention's output and its sums, and their
// gradients; the keys and values at hand are in it.
struct ContextMemory {
  Bytes gathers;  // before there is an output
  Bytes forward, backward;
  Bytes kept;  // from the forward to the backward: the output as it was exchanged
};

struct ContextAttention {
  int64_t samples = 1, tokens = 0;  // whole
  int64_t heads = 0;                // of q, on the device
  // Numbers of a token: its queries; its keys and values; the output.
  int64_t q_row = 0, row = 0, out_row = 0;
  bool causal = false;
  int64_t window = 0, key_tile = 0;
  // Whether keys and values are a tensor of their own, which stays from the forward to the
  // backward; else they are copied out of q, k, v, which are exchanged together.
  bool apart = false;
  TensorParallel split;
  NumberWidth width;

  bool parts() const { return split.context > 1; }
  bool ring() const { return parts() && split.exchange == ContextExchange::kRing; }
  bool by_heads() const { return parts() && split.exchange == ContextExchange::kHeads; }
  // Parts of the device's heads, of which it attends with one.
  int64_t head_parts() const { return by_heads() ? split.context : 1; }
  // Tokens of one call's queries: the device's are two chunks where causal, else one.
  int64_t chunk() const {
    return by_heads() ? tokens : tokens / split.context / (parts() && causal ? 2 : 1);
  }
  Bytes OwnKeys() const { return width(samples * tokens / split.context * row); }
  Bytes AllKeys() const { return width(samples * tokens * row); }

  // Pairs of a query and a key of one sample whose score is computed, on the device with most: of
  // whole blocks of query rows (attention_workspace.h). Round a ring devices wait for one another,
  // so that most are those of each step.
  int64_t Pairs() const;
  // The flops of a product with so many numbers of all heads for each pair.
  Flops PairFlops(int64_t columns) const;
  // Rows of keys and values of one sample that the calls read, those with parts of the tokens.
  int64_t KeysRead() const;
  ContextMemory Memory() const;
  TensorCollectives Collectives() const;
  // What devices do to put keys and their gradients in order, or to merge parts.
  void AddOperations(LayerOperations* ops) const;
  // The part of these that any implementation of the ring does: of the kind kGelu, as nothing else
  // is here.
  Operation Merges() const;

 private:
  // What an exchange of so many numbers takes in any implementation: they are put in order by
  // devices in front of it, and by heads or tokens behind. Such a copy is of the kind kActivation,
  // as nothing else is here.
  Operation Reorders(int64_t numbers) const;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_CONTEXT_ATTENTION_SPEC_H_
