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

  constexpr int64_t rows() const { return samples * tokens; }
  constexpr int64_t groups() const { return experts + shared; }
  constexpr int64_t choices() const { return chosen + shared; }
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_ROUTER_SHAPE_H_
