#include <algorithm>
#include <memory>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace gpu {
namespace {

class CudaQuantizedKernels final : public QuantizedKernels {
 public:
  explicit CudaQuantizedKernels(Device* device) : device_(device) {}

  void DoProduct(Int4Math math, const Tensor& x_MK, const Int4Weights& w,
                 const Tensor& y_MN) override {
    const Int4Factors book = FactorsOfBook(math, w.book);
    Int4Call call{w.shape, RowsOf(x_MK).rows, Ids(w.codes), DataOf<BFloat16>(w.scales),
                  {},      book.step};
    std::copy(book.numbers.begin(), book.numbers.end(), call.book);
    ByType(x_MK, [&](auto at) { Int4Product(*device_, call, math, at(x_MK), at(y_MN)); });
  }

 private:
  Device* const device_;
};

}  // namespace

std::unique_ptr<QuantizedKernels> MakeQuantizedKernels(Device* device) {
  return std::make_unique<CudaQuantizedKernels>(device);
}

}  // namespace gpu
}  // namespace pipelab
