// Sums of several tensors' elements, taken in the order given: the same bits whoever computes them
// and however the elements are divided among threads. And the largest of them.
//
//   SumInOrder({a.data(), b.data()}, {a.data(), b.data()}, DataType::kFloat32, begin, count);
//
// float32 adds in float32, bfloat16 adds in float32 and rounds once, int32 wraps.
#ifndef PIPELAB_KERNELS_COMM_SUM_H_
#define PIPELAB_KERNELS_COMM_SUM_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/tensor/memory.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

// out[k][i] = in[0][i] + in[1][i] + ... for every output k and `count` elements i from `begin`. An
// output may be one of the inputs; otherwise they must not overlap.
void SumInOrder(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                DataType type, int64_t begin, int64_t count);
// The same with the largest of the inputs' elements; NaN where one is.
void Largest(absl::Span<const void* const> inputs, absl::Span<void* const> outputs, DataType type,
             int64_t begin, int64_t count);

// Either of them where the tensors lie: in the host's memory (null), at once, or a device's, queued
// on it.
void ReduceIn(Memory* memory, MemoryReduction reduction, absl::Span<const void* const> inputs,
              absl::Span<void* const> outputs, DataType type, int64_t begin, int64_t count);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_SUM_H_
