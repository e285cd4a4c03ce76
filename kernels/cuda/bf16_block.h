// A GPT block in bfloat16, forward and backward, as training on GPUs computes it: activations and
// weights in bfloat16, sums and gradients of weights in float32, LayerNorm before attention and
// before the MLP. What the speed table measures (layer_speed): the Backend's kernels, as training
// calls them, but that the gradient that goes past a norm is added in the norm's own kernel.
//
//   BlockSize size;  size.samples = 1; size.tokens = 2048; size.hidden = 8192; size.heads = 64;
//   Bf16Block block(size, BlockAttention::kBackend, device);
//   block.Forward();  block.Backward();            // queued; device->Finish() waits
//
// For comparison there is attention by batched products over the heads of a sample, with the matrix
// of probabilities kept: the library's products, but each score is written and read several times.
#ifndef PIPELAB_KERNELS_CUDA_BF16_BLOCK_H_
#define PIPELAB_KERNELS_CUDA_BF16_BLOCK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/device.h"
#include "kernels/tensor/arena.h"

namespace pipelab {
namespace gpu {

struct BlockSize {
  int64_t samples = 1, tokens = 0, hidden = 0, heads = 0;

  int64_t rows() const { return samples * tokens; }
  int64_t inner() const { return 4 * hidden; }
  int64_t head_size() const { return hidden / heads; }
  // Products and sums of the forward, of all scores, masked or not (Megatron-LM's count); the
  // backward has twice as many.
  double flops() const {
    const double m = static_cast<double>(rows()), c = static_cast<double>(hidden);
    return 24 * m * c * c + 4 * m * static_cast<double>(tokens) * c;
  }
};

enum class BlockAttention { kBackend, kProducts };

class Bf16Block {
 public:
  // Weights and inputs are drawn from `seed`.
  Bf16Block(const BlockSize& size, BlockAttention attention, std::shared_ptr<Device> device,
            uint64_t seed = 1);

  void Forward();
  // Computes from the output's gradient dy(); adds to the gradients of the weights.
  void Backward();

  // For tests: values by name ("x", "y", "dy", "dx", "wqkv", "dwqkv", ...), as float32.
  std::vector<float> Value(const std::string& name);
  int64_t bytes() const { return arena_.current_transient().value(); }

 private:
  Tensor New(DataType type, Shape shape);
  Tensor Drawn(const std::string& name, Shape shape, float spread, uint64_t seed);
  Tensor Weight(const std::string& name, Shape shape, float spread, uint64_t seed);
  void AttentionForward();
  void AttentionBackward();
  void HeadProduct(MatmulCall call);
  void ProductsForward(int64_t sample);
  void ProductsBackward(int64_t sample);
  void NormGradients(const Tensor& x, const Tensor& gamma, const Tensor& mean, const Tensor& rstd,
                     const Tensor& residual, const Tensor& dgamma, const Tensor& dbeta,
                     const Tensor& dx);

  const BlockSize size_;
  const BlockAttention attention_;
  const std::shared_ptr<Device> device_;
  Arena arena_;
  const std::unique_ptr<Backend> backend_;
  std::vector<std::pair<std::string, Tensor>> named_;
  Tensor x_, y_, dy_, dx_;
  Tensor wqkv_, wo_, w1_, w2_, bqkv_, bo_, b1_, b2_;          // bfloat16
  Tensor dwqkv_, dwo_, dw1_, dw2_, dbqkv_, dbo_, db1_, db2_;  // float32
  Tensor gamma1_, beta1_, gamma2_, beta2_;                    // bfloat16
  Tensor dgamma1_, dbeta1_, dgamma2_, dbeta2_;                // float32
  Tensor mean1_, rstd1_, mean2_, rstd2_;
  Tensor norm1_, qkv_, mix_, middle_, norm2_, h_, gelu_;  // kept for the backward
  Tensor lse_;                                            // of the Backend's attention
  Tensor p_, dp_;  // of products: matrices of probabilities, and of one sample's gradients
  Tensor dqkv_, dmix_, dmiddle_, dnorm_, dh_, branch_;  // of the backward, and scratch
};

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_BF16_BLOCK_H_
