// How fast products with 4-bit weights are here, and what bounds them: the larger of bytes /
// bandwidth and flops / peak, both measured beside them.
//
//   const Int4Product product({8192, 10240, 128}, /*most_rows=*/128);
//   product.LeastSeconds(Int4Math::kInt8, /*m=*/4);
//   product.bytes() / product.Bandwidth();     // bounds: this, and flops over this:
//   PeakFlops(Int4Math::kInt8);
//
// Times are processor time of the calling thread: what other programs take does not count, what
// they do to caches and memory does. So limits are measured again beside each product.
#ifndef PIPELAB_KERNELS_CPU_INT4_SPEED_H_
#define PIPELAB_KERNELS_CPU_INT4_SPEED_H_

#include <cstdint>
#include <vector>

#include "kernels/int4_weights.h"
#include "kernels/tensor/arena.h"

namespace pipelab {
namespace cpu {

// Flops a second of the instruction that the fastest kernel of the math is made of, from registers
// alone; 0 where the processor has only plain loops for it.
double PeakFlops(Int4Math math);

// Those that have instructions of their own here, beside float32's; the first is int8.
std::vector<Int4Math> MathsOfTheirOwn();

// A product whose weights are drawn, and its times.
class Int4Product {
 public:
  Int4Product(const Int4Shape& shape, int64_t most_rows);

  const Int4Weights& weights() const { return weights_; }
  const float* x_MK() const { return x_MK_.f32().data(); }
  float* y_MN() const { return y_MN_.f32().data(); }
  int64_t bytes() const { return weights_.bytes(); }
  // Bytes a second of reading the codes, the best of a few.
  double Bandwidth() const;
  // The time of m rows, which are made int8 or bfloat16 in the same time.
  double LeastSeconds(Int4Math math, int64_t m) const;

 private:
  Arena arena_;
  Int4Weights weights_;
  Tensor x_MK_, y_MN_;
};

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_INT4_SPEED_H_
