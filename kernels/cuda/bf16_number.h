// bfloat16 numbers as kernels take them: the upper half of a float32, rounded to nearest, ties to
// even; NaNs stay NaNs. As kernels/comm/sum.cc has them.
#ifndef PIPELAB_KERNELS_CUDA_BF16_NUMBER_H_
#define PIPELAB_KERNELS_CUDA_BF16_NUMBER_H_

#include <cstdint>

#include "kernels/cuda/launch.h"

namespace pipelab {
namespace gpu {

union FloatBits {
  uint32_t bits;
  float value;
};

PIPELAB_DEVICE inline float FromBf16(uint16_t x) {
  FloatBits wide;
  wide.bits = static_cast<uint32_t>(x) << 16;
  return wide.value;
}

PIPELAB_DEVICE inline uint16_t ToBf16(float x) {
  FloatBits wide;
  wide.value = x;
  const uint32_t bits = wide.bits;
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_BF16_NUMBER_H_
