// The operations of a group of devices, each with one tensor of the same shape.
#ifndef PIPELAB_MODELS_GRAPH_COLLECTIVE_H_
#define PIPELAB_MODELS_GRAPH_COLLECTIVE_H_

#include <cstdint>

#include "tools/base/units.h"

namespace pipelab {

enum class Collective : uint8_t { kAllReduce, kReduceScatter, kAllGather };

// What each of d devices sends in a ring, of a tensor of `whole` bytes: an all-reduce goes around
// twice, a reduce-scatter or all-gather once.
inline Bytes RingTraffic(Bytes whole, int64_t devices, bool all_reduce) {
  return Bytes(whole.value() * (devices - 1) * (all_reduce ? 2 : 1) / devices);
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_COLLECTIVE_H_
