#include "models/layers/micro_batch_norm.h"

#include <algorithm>
#include <utility>

#include "kernels/tensor/arena.h"
#include "kernels/tensor/host_values.h"

namespace pipelab {

Tensor MicroBatchNorm::Forward(const LayerContext& ctx, const Tensor& x_MC, const Parameter& gamma,
                               const Parameter& beta, const std::vector<Tensor>& running,
                               Tensor* mean_C, Tensor* variance_C) const {
  Backend& b = *ctx.backend;
  if (!ctx.training) {
    b.batch_norm().Inference(x_MC, gamma.value, beta.value, running[0], running[1], x_MC);
    return x_MC;
  }
  *mean_C = b.AllocateFloats({x_MC.dim(1)});
  *variance_C = b.AllocateFloats({x_MC.dim(1)});
  Tensor y_MC = b.Allocate(x_MC.shape());
  b.batch_norm().Forward(x_MC, gamma.value, beta.value, y_MC, *mean_C, *variance_C);
  return y_MC;
}

void MicroBatchNorm::InputGradient(const LayerContext& ctx, const Tensor& dy_MC, const Tensor& x_MC,
                                   const Parameter& gamma, const Tensor& mean_C,
                                   const Tensor& variance_C, std::vector<Tensor>* parts) {
  Backend& b = *ctx.backend;
  Tensor dgamma_part_C = b.AllocateFloats(mean_C.shape()),
         dbeta_part_C = b.AllocateFloats(mean_C.shape());
  b.batch_norm().InputGradient(dy_MC, x_MC, gamma.value, mean_C, variance_C, dy_MC, dgamma_part_C,
                               dbeta_part_C);
  seen_[ctx.first_sample].rows = x_MC.dim(0);
  std::vector<float>& statistics = seen_[ctx.first_sample].mean_and_variance;
  statistics = HostValues(mean_C);
  const std::vector<float> variance = HostValues(variance_C);
  statistics.insert(statistics.end(), variance.begin(), variance.end());
  parts->push_back(std::move(dgamma_part_C));
  parts->push_back(std::move(dbeta_part_C));
}

void MicroBatchNorm::WeightGradient(const LayerContext& ctx, const Tensor& dgamma_part_C,
                                    const Tensor& dbeta_part_C, const Parameter& gamma,
                                    const Parameter& beta) {
  ctx.backend->batch_norm().WeightGradient(dgamma_part_C, dbeta_part_C, gamma.gradient,
                                           beta.gradient);
}

void MicroBatchNorm::EndStep(Backend* backend, const std::vector<Tensor>& running) {
  if (seen_.empty()) return;
  Arena arena;  // not the device's: see the header
  {
    const int64_t count = static_cast<int64_t>(seen_.size());
    const Tensor all_B2C =
        arena.Allocate(DataType::kFloat32, {count, 2 * running[0].size()}, MemoryKind::kWorkspace);
    float* row = all_B2C.f32().data();
    std::vector<int64_t> rows_B;
    for (const auto& [sample, statistics] : seen_) {
      rows_B.push_back(statistics.rows);
      row =
          std::copy(statistics.mean_and_variance.begin(), statistics.mean_and_variance.end(), row);
    }
    backend->batch_norm().UpdateRunning(all_B2C, rows_B, kBatchNormMomentum, running[0],
                                        running[1]);
  }
  seen_.clear();
}

}  // namespace pipelab
