// What a slice's attention costs whose pass gives chunks to other devices or computes those of
// others (TokenSlice::exchanges; pipelines/ir/slice_exchange.h).
// models/layers/exchanged_attention.h runs it, with memory to the byte.
//
//   const SliceAttention a = ...;              // of one device
//   costs.forward_peak = beside + a.Memory().forward;
//   a.Messages().forward;                          // LayerSplit::context_collectives
//
// A slice that exchanges nothing has the costs of one call of the kernel. What a pass sends runs
// beside its attention.
#ifndef PIPELAB_MODELS_SPECS_SLICE_ATTENTION_SPEC_H_
#define PIPELAB_MODELS_SPECS_SLICE_ATTENTION_SPEC_H_

#include <cstdint>

#include "models/graph/layer_spec.h"

namespace pipelab {

// The most beside q, k and v of whole samples and their gradient, the slice's output and its sums;
// backward first with the output's gradient, and then without it and without the sums.
struct SliceAttentionMemory {
  Bytes forward, backward, backward_end;
};

struct SliceAttention {
  int64_t samples = 1;
  TokenSlice slice;
  int64_t heads = 0;                 // of q, on the device
  int64_t query = 0, keys = 0;       // numbers of a token: its queries; its keys and values
  int64_t window = 0, key_tile = 0;  // 0: none
  NumberWidth width;

  // Chunks that it gives, and the tokens that its own attention sees.
  int64_t GivenTokens() const;
  int64_t KeptTokens() const { return slice.end() - GivenTokens(); }
  // Pairs of a query and a key of one sample whose score the device computes, others' too.
  int64_t Pairs() const;
  int64_t KeysRead() const;  // rows of one sample
  SliceAttentionMemory Memory() const;
  // A hop for each device at the other end.
  TensorCollectives Messages() const;
  // Copies of what goes, merges of what comes.
  void AddOperations(LayerOperations* ops) const;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_SLICE_ATTENTION_SPEC_H_
