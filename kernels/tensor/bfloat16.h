// bfloat16: the upper half of a float32, rounded to nearest, ties to even; NaNs stay NaNs. Stored
// only: arithmetic is in float32, and what is stored again is rounded once.
//
//   BFloat16 x(1.0f);
//   x = 2.0f * x + 1.0f;
//
// For kernels too, so free of Abseil.
#ifndef PIPELAB_KERNELS_TENSOR_BFLOAT16_H_
#define PIPELAB_KERNELS_TENSOR_BFLOAT16_H_

#include <cstdint>

#ifdef __CUDACC__
#define PIPELAB_HOST_DEVICE __host__ __device__
#else
#define PIPELAB_HOST_DEVICE
#endif

namespace pipelab {

class BFloat16 {
 public:
  BFloat16() = default;
  PIPELAB_HOST_DEVICE explicit BFloat16(float value) : bits_(Round(value)) {}
  PIPELAB_HOST_DEVICE BFloat16& operator=(float value) {
    bits_ = Round(value);
    return *this;
  }
  PIPELAB_HOST_DEVICE operator float() const {  // NOLINT: exact, as from float to double
    FloatBits wide;
    wide.bits = static_cast<uint32_t>(bits_) << 16;
    return wide.value;
  }

 private:
  union FloatBits {
    uint32_t bits;
    float value;
  };
  static PIPELAB_HOST_DEVICE uint16_t Round(float value) {
    FloatBits wide;
    wide.value = value;
    const uint32_t bits = wide.bits;
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40);
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }

  uint16_t bits_;
};
static_assert(sizeof(BFloat16) == 2, "two bytes");

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_TENSOR_BFLOAT16_H_
