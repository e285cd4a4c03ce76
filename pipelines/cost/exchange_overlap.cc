#include "pipelines/cost/exchange_overlap.h"

#include <algorithm>

namespace pipelab {

Nanoseconds HiddenExchanges(const MergedBlock& block, bool delayed_weights) {
  const Nanoseconds x = block.exchange;
  const BlockPartTimes &a = block.attention, &e = block.experts;
  const Nanoseconds attention_backward = a.backward_input + a.backward_weight;
  const Nanoseconds experts_backward = e.backward_input + e.backward_weight;
  const Nanoseconds gradients = delayed_weights ? e.backward_input : experts_backward;
  const Nanoseconds middle =
      std::max(std::max(x, gradients) + x, std::max(x, experts_backward) + e.forward);
  const Nanoseconds merged = std::max(x, a.forward) + middle + std::max(x, attention_backward);
  return x * 4 + a.forward + attention_backward + experts_backward + e.forward - merged;
}

}  // namespace pipelab
