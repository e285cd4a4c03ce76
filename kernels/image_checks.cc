// The checks of image kernels.
#include <initializer_list>

#include "glog/logging.h"
#include "kernels/convolution_kernels.h"
#include "kernels/pooling_kernels.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace {

// Works for both kinds of shape, which name their fields alike.
template <class ImageShape>
void CheckGeometry(const char* kernel, const ImageShape& s) {
  CHECK(s.samples > 0 && s.height > 0 && s.width > 0)
      << kernel << ": " << s.samples << " images of " << s.height << " x " << s.width;
  CHECK(s.stride_height > 0 && s.stride_width > 0)
      << kernel << ": strides " << s.stride_height << ", " << s.stride_width;
  CHECK(s.kernel_height > 0 && s.kernel_width > 0 && 0 <= s.pad_height &&
        s.pad_height < s.kernel_height && 0 <= s.pad_width && s.pad_width < s.kernel_width)
      << kernel << ": a kernel of " << s.kernel_height << " x " << s.kernel_width
      << " with paddings of " << s.pad_height << ", " << s.pad_width;
  CHECK(s.height + 2 * s.pad_height >= s.kernel_height &&
        s.width + 2 * s.pad_width >= s.kernel_width)
      << kernel << ": a kernel of " << s.kernel_height << " x " << s.kernel_width
      << " over images of " << s.height << " x " << s.width;
}

void CheckImages(const char* kernel, const char* name, const Tensor& x, int64_t samples,
                 int64_t height, int64_t width, int64_t channels) {
  CHECK(!x.empty() && x.size() == samples * height * width * channels)
      << kernel << ": " << name << " is " << ShapeToString(x.shape()) << " where "
      << ShapeToString({samples, height, width, channels}) << " belongs";
}

}  // namespace

void CheckConvolution(const char* kernel, const ConvolutionShape& s, const Tensor& x_NHWC,
                      const Tensor& w_HWIO, const Tensor& b_O, const Tensor& y_NHWC) {
  CheckGeometry(kernel, s);
  CHECK(s.in_channels > 0 && s.out_channels > 0 &&
        (!s.depthwise || s.in_channels == s.out_channels))
      << kernel << ": " << s.in_channels << " to " << s.out_channels << " channels"
      << (s.depthwise ? ", depthwise" : "");
  CheckImages(kernel, "x", x_NHWC, s.samples, s.height, s.width, s.in_channels);
  CheckImages(kernel, "w", w_HWIO, s.kernel_height, s.kernel_width, s.depthwise ? 1 : s.in_channels,
              s.out_channels);
  CheckImages(kernel, "y", y_NHWC, s.samples, s.out_height(), s.out_width(), s.out_channels);
  CHECK(b_O.empty() || b_O.size() == s.out_channels)
      << kernel << ": b " << ShapeToString(b_O.shape()) << " for " << s.out_channels << " channels";
}

void CheckPooling(const char* kernel, const PoolingShape& s,
                  std::initializer_list<const Tensor*> in_NHWC,
                  std::initializer_list<const Tensor*> out_NHWC) {
  CheckGeometry(kernel, s);
  CHECK_GT(s.channels, 0) << kernel;
  for (const Tensor* x : in_NHWC) {
    CheckImages(kernel, "x", *x, s.samples, s.height, s.width, s.channels);
  }
  for (const Tensor* y : out_NHWC) {
    CheckImages(kernel, "y", *y, s.samples, s.out_height(), s.out_width(), s.channels);
  }
}

void CheckBatchNorm(const char* kernel, std::initializer_list<const Tensor*> full_MC,
                    std::initializer_list<const Tensor*> per_column_C) {
  const RowsSize size = CheckRows(kernel, full_MC, per_column_C, {});
  CHECK_GT(size.rows, 0) << kernel << ": no rows have no statistics";
}

void CheckRunningStatistics(const Tensor& statistics_B2C, absl::Span<const int64_t> rows_B,
                            const Tensor& running_mean_C, const Tensor& running_variance_C) {
  const int64_t c = CheckSameSize("BatchNormUpdateRunning", {&running_mean_C, &running_variance_C});
  const RowsSize size = RowsOf(statistics_B2C);
  CHECK(size.columns == 2 * c && size.rows > 0)
      << "BatchNormUpdateRunning: " << ShapeToString(statistics_B2C.shape()) << " where rows of "
      << 2 * c << " belong";
  CHECK(rows_B.empty() || static_cast<int64_t>(rows_B.size()) == size.rows)
      << "BatchNormUpdateRunning: " << rows_B.size() << " row counts for " << size.rows
      << " micro-batches";
  for (int64_t rows : rows_B) CHECK_GT(rows, 0) << "BatchNormUpdateRunning";
}

}  // namespace pipelab
