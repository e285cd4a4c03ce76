#include <memory>

#include "kernels/cpu/groups.h"
#include "kernels/cpu/int4/int4_call.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace cpu {
namespace {

class CpuQuantizedKernels final : public QuantizedKernels {
 public:
  void DoProduct(Int4Math math, const Tensor& x_MK, const Int4Weights& w,
                 const Tensor& y_MN) override {
    const Int4Matrix matrix = MatrixOf(w);
    const Int4Activations x(math, matrix, Data(x_MK), RowsOf(x_MK).rows);
    Int4Paths(math).front().run(matrix, x, 0, w.shape.panels(), Data(y_MN));
  }
};

}  // namespace

std::unique_ptr<QuantizedKernels> MakeQuantizedKernels() {
  return std::make_unique<CpuQuantizedKernels>();
}

}  // namespace cpu
}  // namespace pipelab
