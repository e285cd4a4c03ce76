// tools/base/rng.h's numbers for kernels; philox_test holds them to it, bit for bit.
#ifndef PIPELAB_KERNELS_CUDA_PHILOX_H_
#define PIPELAB_KERNELS_CUDA_PHILOX_H_

#include <cstdint>

#include "kernels/cuda/launch.h"

namespace pipelab {
namespace gpu {

// CounterRng(seed, stream).Bits(index).
PIPELAB_DEVICE inline uint32_t RandomBits(uint64_t seed, uint64_t stream, uint64_t index) {
  const uint64_t block = index / 4;
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
  uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c0, p1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  switch (index % 4) {
    case 0:
      return c0;
    case 1:
      return c1;
    case 2:
      return c2;
    default:
      return c3;
  }
}

// CounterRng(seed, stream).Uniform(index).
PIPELAB_DEVICE inline float RandomUniform(uint64_t seed, uint64_t stream, uint64_t index) {
  return static_cast<float>(RandomBits(seed, stream, index) >> 8) * 5.9604644775390625e-8f;
}

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_PHILOX_H_
