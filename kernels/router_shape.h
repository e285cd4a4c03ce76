// How a router chooses among experts (ExpertKernels::Route), as plain numbers.
#ifndef PIPELAB_KERNELS_ROUTER_SHAPE_H_
#define PIPELAB_KERNELS_ROUTER_SHAPE_H_

#include <cstdint>

namespace pipelab {

enum class RouterScores : uint8_t {
  kSoftmax,  // over all experts
  kSigmoid,  // of each expert alone, as in DeepSeek-V3
};

// A token takes the `chosen` experts of the largest logits, of equal ones the first, and `shared`
// ones that all tokens take, with weight 1. The others' weights are `scale` times their scores,
// or, `normalized`, times their share of the chosen scores' sum.
struct RouterShape {
  int64_t samples = 0, tokens = 0;  // of each sample
  int64_t experts = 0, chosen = 0, shared = 0;
  RouterScores scores = RouterScores::kSoftmax;
  bool normalized = true;
  float scale = 1;
  // Tokens of a sample that an expert takes at most, the first ones; 0: all.
  int64_t capacity = 0;
  // Experts lie on so many nodes, as many on each, and a token's experts (not the shared ones) come
  // from `most_nodes` of them: those of the largest sums of their two largest scores, of equal ones
  // the first (DeepSeek-V3, arXiv 2412.19437). 0 nodes: from all.
  int64_t nodes = 0, most_nodes = 0;

  constexpr int64_t experts_of_node() const { return nodes == 0 ? experts : experts / nodes; }
  constexpr int64_t rows() const { return samples * tokens; }
  constexpr int64_t groups() const { return experts + shared; }
  constexpr int64_t choices() const { return chosen + shared; }
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_ROUTER_SHAPE_H_
