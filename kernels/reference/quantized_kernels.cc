#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/reference/groups.h"
#include "kernels/reference/wide.h"
#include "kernels/shape_checks.h"
#include "kernels/tensor/bfloat16.h"

namespace pipelab {
namespace reference {
namespace {

// What a product takes its factors for (Int4Math), in double.
struct Factors {
  Int4Book book;
  std::vector<float> x_MK;
  std::vector<double> steps_MS;  // of spans
};

Factors FactorsOf(Int4Math math, const Int4Weights& w, const Tensor& x_MK) {
  const auto [m, k] = RowsOf(x_MK);
  const int64_t spans = w.shape.spans(), span = w.shape.span();
  const Int4Factors book = FactorsOfBook(math, w.book);
  Factors f{
      book.numbers, {x_MK.f32().begin(), x_MK.f32().end()}, std::vector<double>(m * spans, 1)};
  if (math == Int4Math::kBFloat16) {
    for (float& x : f.x_MK) x = BFloat16(x);
  }
  if (math != Int4Math::kInt8) return f;
  for (int64_t i = 0; i < m * spans; ++i) {
    const int64_t row = i / spans, begin = i % spans * span, count = std::min(span, k - begin);
    float* const x = &f.x_MK[row * k + begin];
    float most = 0;
    for (int64_t j = 0; j < count; ++j) most = std::max(most, std::abs(x[j]));
    const Int8Step step(most);
    for (int64_t j = 0; j < count; ++j) x[j] = step.Of(x[j]);
    f.steps_MS[i] = double{step.step} * book.step;
  }
  return f;
}

class ReferenceQuantizedKernels final : public QuantizedKernels {
 public:
  void DoProduct(Int4Math math, const Tensor& x_MK, const Int4Weights& w,
                 const Tensor& y_MN) override {
    const Int4Shape& s = w.shape;
    const Factors f = FactorsOf(math, w, x_MK);
    const Int4Codes codes = UnpackInt4(w);
    const int64_t m = RowsOf(x_MK).rows;
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t n = 0; n < s.n; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < s.k; ++k) {
          sum += double{f.x_MK[row * s.k + k]} * f.steps_MS[row * s.spans() + k / s.span()] *
                 f.book[codes.codes_KN[k * s.n + n]] * codes.scales_GN[k / s.group * s.n + n];
        }
        y_MN.f32()[row * s.n + n] = static_cast<float>(sum);
      }
    }
  }
};

}  // namespace

std::unique_ptr<QuantizedKernels> MakeQuantizedKernels() {
  return std::make_unique<ReferenceQuantizedKernels>();
}

}  // namespace reference
}  // namespace pipelab
