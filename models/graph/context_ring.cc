#include "models/graph/context_ring.h"

#include <algorithm>

namespace pipelab {

std::vector<ContextStep> RingSteps(const ContextPart& part, int64_t chunk, int64_t window) {
  // Chunks before its own that a chunk's first query sees some key of.
  const int64_t reach = window == 0 ? part.parts : window == 1 ? 0 : (window - 2) / chunk + 1;
  const bool both_ways = part.balanced && 2 * reach < part.parts - 1;
  const int64_t hops = both_ways ? reach : part.parts - 1;
  const int64_t ways = hops == 0 ? 0 : both_ways ? 2 : 1;
  ContextStep own;
  own.keys = 1 + ways;
  own.gradients = 1;
  own.forward_hops = own.backward_hops = ways;
  std::vector<ContextStep> steps = {own};
  for (int64_t way = 0; way < ways; ++way) {
    for (int64_t k = 1; k <= hops; ++k) {
      ContextStep step;
      step.shift = way == 0 ? k : -k;
      step.last = k == hops;
      step.forward_hops = step.last ? 0 : 1;
      step.keys = 1 + step.forward_hops + (ways - 1 - way);
      // The gradients of the step before, of which the first way's go home beside the second's
      // first step.
      step.backward_hops = step.forward_hops + (k > 1 || way > 0 ? 1 : 0);
      step.gradients = 2 + (k > 1 ? 1 : 0) + way;
      steps.push_back(step);
    }
  }
  return steps;
}

int64_t SeeingQueries(int64_t query_chunk, int64_t key_chunk, int64_t chunk, int64_t window) {
  if (key_chunk > query_chunk) return 0;
  if (window == 0) return chunk;
  const int64_t between = (query_chunk - key_chunk) * chunk;
  return std::max<int64_t>(0, std::min(chunk, chunk + window - 1 - between));
}

}  // namespace pipelab
