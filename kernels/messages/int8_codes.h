// The loops of 8-bit messages (int8_blocks.h), for one block of any size and alignment.
//
//   const float step = Int8BlockStep(LargestFinite(x, n));
//   EncodeInt8(x, n, step, codes);
//   DecodeInt8(codes, n, step, y);
#ifndef PIPELAB_KERNELS_MESSAGES_INT8_CODES_H_
#define PIPELAB_KERNELS_MESSAGES_INT8_CODES_H_

#include <cstdint>

namespace pipelab {

inline constexpr int8_t kInt8Nan = -128;

// The largest absolute value; 0 if none is finite.
float LargestFinite(const float* x, int64_t n);
// The least bfloat16 of which 127 reach `largest`, which is finite.
float Int8BlockStep(float largest);
void EncodeInt8(const float* x, int64_t n, float step, int8_t* codes);
void DecodeInt8(const int8_t* codes, int64_t n, float step, float* y);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_MESSAGES_INT8_CODES_H_
