// Products with weights in 4 bits (kernels/int4_weights.h).
//
//   backend->quantized().Product(Int4Math::kInt8, x_MK, weights, y_MN);   // y = x w
#ifndef PIPELAB_KERNELS_QUANTIZED_KERNELS_H_
#define PIPELAB_KERNELS_QUANTIZED_KERNELS_H_

#include "kernels/int4_weights.h"  // IWYU pragma: export
#include "kernels/tensor/tensor.h"

namespace pipelab {

// Sizes that fit, or CHECK, naming the kernel.
void CheckInt4Product(const char* kernel, const Tensor& x_MK, const Int4Weights& weights,
                      const Tensor& y_MN);

class QuantizedKernels {
 public:
  virtual ~QuantizedKernels() = default;

  // Int4Math says what the factors are rounded to. Sums are in float32.
  void Product(Int4Math math, const Tensor& x_MK, const Int4Weights& weights, const Tensor& y_MN) {
    CheckInt4Product("Int4Product", x_MK, weights, y_MN);
    DoProduct(math, x_MK, weights, y_MN);
  }

 private:
  virtual void DoProduct(Int4Math math, const Tensor& x_MK, const Int4Weights& weights,
                         const Tensor& y_MN) = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_QUANTIZED_KERNELS_H_
