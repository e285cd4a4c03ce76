// The steps of ring attention among devices with parts of each sample's tokens (context_part.h;
// Liu et al., "Ring attention with blockwise transformers for near-infinite context", 2023).
//
//   for (const ContextStep& step : RingSteps(part, /*chunk=*/part_tokens / 2, /*window=*/0)) ...
//
// A device begins with its own keys and values. In each later step it has those that its neighbour
// had, while the next ones are under way: C - 1 hops. The gradients of keys and values go round
// behind them, and in the end straight home; what a device adds to its own stays there.
//
// With a window a device needs the keys of a few neighbours on each side alone, since chunk i has
// chunk i - 1 on one side, and chunk 2C - 1 - i has the one before it on the other. Where that is
// fewer, keys go so far both ways, and the hops beyond are left out.
#ifndef PIPELAB_MODELS_GRAPH_CONTEXT_RING_H_
#define PIPELAB_MODELS_GRAPH_CONTEXT_RING_H_

#include <cstdint>
#include <vector>

#include "models/graph/context_part.h"

namespace pipelab {

struct ContextStep {
  // The step's keys are those of the device so many places back; on, where negative. 0: its own.
  int64_t shift = 0;
  bool last = false;  // of those that go this way
  // Parts of keys and values, or of their gradients, that a device has in the step: at hand and
  // under way to it. Keys of its own beyond the first step are not counted.
  int64_t keys = 0, gradients = 0;
  // That it sends beside the step's attention.
  int64_t forward_hops = 0, backward_hops = 0;
};

// Behind the last step's attention there is one more backward hop, where there are hops at all.
std::vector<ContextStep> RingSteps(const ContextPart& part, int64_t chunk, int64_t window);

// How many of the first queries of a chunk see keys of another (or the same) one, in a causal mask;
// 0: none.
int64_t SeeingQueries(int64_t query_chunk, int64_t key_chunk, int64_t chunk, int64_t window);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_CONTEXT_RING_H_
