#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/recording/groups.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace {

class RecordedQuantized final : public QuantizedKernels {
 public:
  RecordedQuantized(QuantizedKernels* of, CallRecord* record) : of_(of), record_(record) {}
  void DoProduct(Int4Math math, const Tensor& x, const Int4Weights& w, const Tensor& y) override {
    const MatmulSize s = MatmulOf(x, y);
    const double flops =
        2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    record_->Note("Int4Product", absl::StrCat(s.m, "x", s.k, "x", s.n, "/", w.shape.group), flops,
                  {&x, &w.codes, &w.scales, &y}, [&] { of_->Product(math, x, w, y); });
  }

 private:
  QuantizedKernels* const of_;
  CallRecord* const record_;
};

}  // namespace

std::unique_ptr<QuantizedKernels> RecordQuantized(QuantizedKernels* of, CallRecord* record) {
  return std::make_unique<RecordedQuantized>(of, record);
}

}  // namespace pipelab
