// How large a message of int8_blocks.h is; for cost models too, which link no kernels.
#ifndef PIPELAB_KERNELS_MESSAGES_INT8_BYTES_H_
#define PIPELAB_KERNELS_MESSAGES_INT8_BYTES_H_

#include <cstdint>

namespace pipelab {

inline constexpr int64_t kInt8Block = 256;  // values with one step

// `values` must be at least 0, `block` at least 1.
constexpr int64_t Int8MessageBytes(int64_t values, int64_t block) {
  return 16 + 2 * (values / block + (values % block != 0 ? 1 : 0)) + values;
}

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_MESSAGES_INT8_BYTES_H_
