// The tokens that one of C devices has of each sample: context parallelism.
//
//   ContextPart one{/*parts=*/2, /*part=*/1, /*balanced=*/true};
//   one.Tokens(16)                        // {4, 4} and {8, 4}: first token and count
//   one.Tokens(16, {/*first=*/2, 4})      // of its own rows 2 to 5: {6, 2} and {8, 2}
//
// Balanced, for causal masks: of 2C equal chunks device i has number i and number 2C - 1 - i, so
// that all have as many keys to look at (Dubey et al., "The Llama 3 Herd of Models", 2024, section
// 3.3.2). Else device i has the i-th of C parts. Rows are in the order of tokens.
#ifndef PIPELAB_MODELS_GRAPH_CONTEXT_PART_H_
#define PIPELAB_MODELS_GRAPH_CONTEXT_PART_H_

#include <cstdint>
#include <vector>

#include "models/graph/token_slice.h"

namespace pipelab {

// How attention gets at the others' keys and values. kGather: all of them at once (Llama 3). kRing:
// they travel from device to device beside the attention to those at hand (Liu et al., "Ring
// attention with blockwise transformers", 2023; context_ring.h). kHeads: all-to-alls give each
// device all tokens of 1/C of its heads, and take the outputs back (Jacobs et al., "DeepSpeed
// Ulysses", arXiv 2309.14509; Megatron-Core's a2a).
enum class ContextExchange : uint8_t { kGather, kRing, kHeads };

struct ContextPart {
  int64_t parts = 1, part = 0;
  bool balanced = false;
  ContextExchange exchange = ContextExchange::kGather;

  bool whole() const { return parts == 1; }
  bool by_heads() const { return !whole() && exchange == ContextExchange::kHeads; }
  int64_t chunks() const { return balanced ? 2 : 1; }
  // Which of all devices' chunks, in order, its i-th one is.
  int64_t ChunkNumber(int64_t i) const { return i == 0 ? part : 2 * parts - 1 - part; }
  // What the parts must divide into: C, or 2 C.
  int64_t divisor() const { return parts * chunks(); }
  // The true tokens of the device's rows `own` of a sample of `tokens`; of all of them where `own`
  // is whole. Divisible: CHECKed.
  std::vector<TokenSlice> Tokens(int64_t tokens, TokenSlice own = TokenSlice()) const;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_CONTEXT_PART_H_
