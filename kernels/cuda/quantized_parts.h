// What the kernels of products with 4-bit weights share.
//
// For .cu.cc files.
#ifndef PIPELAB_KERNELS_CUDA_QUANTIZED_PARTS_H_
#define PIPELAB_KERNELS_CUDA_QUANTIZED_PARTS_H_

#include "kernels/cuda/functions.h"

namespace pipelab {
namespace gpu {

// quantized_tiles.cu.cc: Int4Product with factors in bfloat16, by tensor cores.
template <class T>
void Int4ProductByTiles(Queue& queue, const Int4Call& call, const T* x, T* y);

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_QUANTIZED_PARTS_H_
