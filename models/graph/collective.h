// The operations of a group of devices, each with one tensor of the same shape.
#ifndef PIPELAB_MODELS_GRAPH_COLLECTIVE_H_
#define PIPELAB_MODELS_GRAPH_COLLECTIVE_H_

#include <cstdint>

namespace pipelab {

enum class Collective : uint8_t { kAllReduce, kReduceScatter, kAllGather };

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_COLLECTIVE_H_
