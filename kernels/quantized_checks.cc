#include "glog/logging.h"
#include "kernels/quantized_kernels.h"
#include "kernels/shape_checks.h"

namespace pipelab {

void CheckInt4Product(const char* kernel, const Tensor& x_MK, const Int4Weights& w,
                      const Tensor& y_MN) {
  const Int4Shape& s = w.shape;
  CheckInt4Shape(s);
  const MatmulSize size = MatmulOf(x_MK, y_MN);
  CHECK(RowsOf(x_MK).rows == size.m && size.k == s.k && size.n == s.n)
      << kernel << ": " << ShapeToString(x_MK.shape()) << " by " << s.k << " x " << s.n << " for "
      << ShapeToString(y_MN.shape());
  CHECK_EQ(w.codes.size(), s.panels() * s.units() * kInt4Columns) << kernel << ": codes";
  CHECK_EQ(w.scales.size(), s.panels() * s.groups() * kInt4Columns) << kernel << ": scales";
}

}  // namespace pipelab
