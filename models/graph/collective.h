// The operations of a group of devices, each with one tensor of the same shape.
#ifndef PIPELAB_MODELS_GRAPH_COLLECTIVE_H_
#define PIPELAB_MODELS_GRAPH_COLLECTIVE_H_

#include <cstdint>

#include "tools/base/units.h"

namespace pipelab {

// kAllToAll: each device has a part of its tensor for each other one, in equal shares here. kHop:
// each sends a tensor to its neighbour in a ring.
enum class Collective : uint8_t { kAllReduce, kReduceScatter, kAllGather, kAllToAll, kHop };

// What each of d devices sends in a ring, of a tensor of `whole` bytes: an all-reduce goes around
// twice, a reduce-scatter or all-gather once. An all-to-all sends as much as one of these.
inline Bytes RingTraffic(Bytes whole, int64_t devices, bool all_reduce) {
  return Bytes(whole.value() * (devices - 1) * (all_reduce ? 2 : 1) / devices);
}

// A message between two groups of so many devices, all of which have it whole: in how many equal
// parts it goes, one from each device to its counterpart, whose group then gathers it
// (Megatron-LM's scatter and gather, arXiv 2104.04473, 4.1). 1: it cannot be divided, and each
// sends all of it.
inline int64_t MessageParts(Bytes whole, int64_t devices) {
  return whole.value() % (4 * devices) == 0 ? devices : 1;
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_COLLECTIVE_H_
