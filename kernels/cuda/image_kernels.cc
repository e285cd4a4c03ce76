// Pooling and batch normalisation. The libraries' do not serve: cuDNN's pooling gradient wants the
// output kept, its batch normalisation keeps the reciprocal deviation, divides the running variance
// by one less, and has no input gradient without the weight gradient.
#include <memory>
#include <vector>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/groups.h"
#include "kernels/shape_checks.h"
#include "kernels/tensor/host_values.h"

namespace pipelab {
namespace gpu {
namespace {

Window PoolingWindowOf(const PoolingShape& s) {
  return {s.samples,      s.height,        s.width,        s.out_height(),
          s.out_width(),  s.kernel_height, s.kernel_width, s.stride_height,
          s.stride_width, s.pad_height,    s.pad_width};
}

class CudaPoolingKernels final : public PoolingKernels {
 public:
  explicit CudaPoolingKernels(Device* device) : device_(device) {}

  void DoMax(const PoolingShape& shape, const Tensor& x_NHWC, const Tensor& y_NHWC) override {
    ByType(x_NHWC, [&](auto at) {
      MaxPool(*device_, PoolingWindowOf(shape), shape.channels, at(x_NHWC), at(y_NHWC));
    });
  }
  void DoMaxGradient(const PoolingShape& shape, const Tensor& dy_NHWC, const Tensor& x_NHWC,
                     const Tensor& dx_NHWC) override {
    ByType(x_NHWC, [&](auto at) {
      MaxPoolGradient(*device_, PoolingWindowOf(shape), shape.channels, at(dy_NHWC), at(x_NHWC),
                      at(dx_NHWC));
    });
  }
  void DoAverage(const PoolingShape& shape, const Tensor& x_NHWC, const Tensor& y_NHWC) override {
    ByType(x_NHWC, [&](auto at) {
      AveragePool(*device_, PoolingWindowOf(shape), shape.channels, shape.count_padding, at(x_NHWC),
                  at(y_NHWC));
    });
  }
  void DoAverageGradient(const PoolingShape& shape, const Tensor& dy_NHWC,
                         const Tensor& dx_NHWC) override {
    ByType(dy_NHWC, [&](auto at) {
      AveragePoolGradient(*device_, PoolingWindowOf(shape), shape.channels, shape.count_padding,
                          at(dy_NHWC), at(dx_NHWC));
    });
  }

 private:
  Device* const device_;
};

class CudaBatchNormKernels final : public BatchNormKernels {
 public:
  explicit CudaBatchNormKernels(Device* device) : device_(device) {}

  void DoForward(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                 const Tensor& y_MC, const Tensor& mean_C, const Tensor& variance_C) override {
    const auto [m, c] = RowsOf(x_MC);
    ByType(x_MC, [&, m = m, c = c](auto at) {
      BatchNormStatistics(*device_, at(x_MC), m, c, Data(mean_C), Data(variance_C));
      BatchNormInference(*device_, at(x_MC), at(gamma_C), at(beta_C), Data(mean_C),
                         Data(variance_C), m, c, at(y_MC));
    });
  }
  void DoStatistics(const Tensor& x_MC, const Tensor& mean_C, const Tensor& variance_C) override {
    const auto [m, c] = RowsOf(x_MC);
    ByType(x_MC, [&, m = m, c = c](auto at) {
      BatchNormStatistics(*device_, at(x_MC), m, c, Data(mean_C), Data(variance_C));
    });
  }
  void DoInputGradient(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                       const Tensor& mean_C, const Tensor& variance_C, const Tensor& dx_MC,
                       const Tensor& dgamma_part_C, const Tensor& dbeta_part_C) override {
    const auto [m, c] = RowsOf(dy_MC);
    ByType(x_MC, [&, m = m, c = c](auto at) {
      BatchNormGradientSums(*device_, at(dy_MC), at(x_MC), Data(mean_C), Data(variance_C), m, c,
                            Data(dgamma_part_C), Data(dbeta_part_C));
      BatchNormInputGradient(*device_, at(dy_MC), at(x_MC), at(gamma_C), Data(mean_C),
                             Data(variance_C), Data(dgamma_part_C), Data(dbeta_part_C), m, m, c,
                             at(dx_MC));
    });
  }
  void DoGradientSums(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& mean_C,
                      const Tensor& variance_C, const Tensor& dgamma_part_C,
                      const Tensor& dbeta_part_C) override {
    const auto [m, c] = RowsOf(dy_MC);
    ByType(x_MC, [&, m = m, c = c](auto at) {
      BatchNormGradientSums(*device_, at(dy_MC), at(x_MC), Data(mean_C), Data(variance_C), m, c,
                            Data(dgamma_part_C), Data(dbeta_part_C));
    });
  }
  void DoInputGradientOfSums(const Tensor& dy_MC, const Tensor& x_MC, const Tensor& gamma_C,
                             const Tensor& mean_C, const Tensor& variance_C, const RowSums& sums,
                             const Tensor& dx_MC) override {
    const auto [m, c] = RowsOf(dy_MC);
    ByType(x_MC, [&, m = m, c = c](auto at) {
      BatchNormInputGradient(*device_, at(dy_MC), at(x_MC), at(gamma_C), Data(mean_C),
                             Data(variance_C), Data(sums.dgamma_C), Data(sums.dbeta_C), sums.rows,
                             m, c, at(dx_MC));
    });
  }
  void DoWeightGradient(const Tensor& dgamma_part_C, const Tensor& dbeta_part_C,
                        const Tensor& dgamma_C, const Tensor& dbeta_C) override {
    const int64_t c = dgamma_part_C.size();
    Add(*device_, Data(dgamma_C), Data(dgamma_part_C), c, Data(dgamma_C));
    Add(*device_, Data(dbeta_C), Data(dbeta_part_C), c, Data(dbeta_C));
  }
  void DoInference(const Tensor& x_MC, const Tensor& gamma_C, const Tensor& beta_C,
                   const Tensor& mean_C, const Tensor& variance_C, const Tensor& y_MC) override {
    const auto [m, c] = RowsOf(x_MC);
    ByType(x_MC, [&, m = m, c = c](auto at) {
      BatchNormInference(*device_, at(x_MC), at(gamma_C), at(beta_C), Data(mean_C),
                         Data(variance_C), m, c, at(y_MC));
    });
  }
  // The statistics, a few numbers that the host has kept, may come from there.
  void DoUpdateRunning(const Tensor& statistics_B2C, absl::Span<const int64_t> rows_B,
                       float momentum, const Tensor& running_mean_C,
                       const Tensor& running_variance_C) override {
    const int64_t batches = RowsOf(statistics_B2C).rows;
    std::vector<float> numbers(rows_B.begin(), rows_B.end());
    const bool from_host = statistics_B2C.on_host();
    if (from_host) {
      const std::vector<float> values = HostValues(statistics_B2C);
      numbers.insert(numbers.end(), values.begin(), values.end());
    }
    const float* const uploaded = device_->Upload(numbers);
    const float* const statistics = from_host ? uploaded + rows_B.size() : Data(statistics_B2C);
    BatchNormUpdateRunning(*device_, statistics, rows_B.empty() ? nullptr : uploaded, batches,
                           running_mean_C.size(), momentum, Data(running_mean_C),
                           Data(running_variance_C));
  }

 private:
  Device* const device_;
};

}  // namespace

std::unique_ptr<PoolingKernels> MakePoolingKernels(Device* device) {
  return std::make_unique<CudaPoolingKernels>(device);
}
std::unique_ptr<BatchNormKernels> MakeBatchNormKernels(Device* device) {
  return std::make_unique<CudaBatchNormKernels>(device);
}

}  // namespace gpu
}  // namespace pipelab
