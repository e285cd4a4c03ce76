#include "models/layers/micro_batch_norm.h"

#include <algorithm>
#include <utility>

#include "kernels/tensor/arena.h"
#include "kernels/tensor/host_values.h"
#include "models/layers/tensor_peers.h"

namespace pipelab {

// The statistics are of the rows of all copies. The own row and everybody's are gone before the
// output comes.
void MicroBatchNorm::StatisticsOfAll(const LayerContext& ctx, const Tensor& x_MC,
                                     const Tensor& mean_C, const Tensor& variance_C) {
  Backend& b = *ctx.backend;
  const int64_t c = mean_C.size();
  const Tensor own = b.AllocateFloats({2, c}),
               all_D2C = b.AllocateFloats({ctx.copies->size(), 2 * c});
  b.batch_norm().Statistics(x_MC, own.Rows(0, 1), own.Rows(1, 2));
  ctx.copies->GatherRows(own.Reshape({1, 2 * c}), all_D2C, /*samples=*/1);
  // A running mean that starts at 0 and takes all of what comes is the union's.
  b.Fill(mean_C, 0);
  b.Fill(variance_C, 0);
  b.batch_norm().UpdateRunning(all_D2C, /*rows_B=*/{}, /*momentum=*/1, mean_C, variance_C);
}

Tensor MicroBatchNorm::Forward(const LayerContext& ctx, const Tensor& x_MC, const Parameter& gamma,
                               const Parameter& beta, const std::vector<Tensor>& running,
                               Tensor* mean_C, Tensor* variance_C) const {
  Backend& b = *ctx.backend;
  if (!ctx.training) {
    b.batch_norm().Inference(x_MC, gamma.value, beta.value, running[0], running[1], x_MC);
    return x_MC;
  }
  const int64_t parts = ctx.norm_parts, rows = x_MC.dim(0) / parts, c = x_MC.dim(1);
  const Shape shape = parts == 1 ? Shape{c} : Shape{parts, c};
  *mean_C = b.AllocateFloats(shape);
  *variance_C = b.AllocateFloats(shape);
  if (ctx.copies != nullptr) {
    StatisticsOfAll(ctx, x_MC, *mean_C, *variance_C);
    Tensor y_MC = b.Allocate(x_MC.shape());
    b.batch_norm().Inference(x_MC, gamma.value, beta.value, *mean_C, *variance_C, y_MC);
    return y_MC;
  }
  Tensor y_MC = b.Allocate(x_MC.shape());
  for (int64_t p = 0; p < parts; ++p) {
    b.batch_norm().Forward(x_MC.Rows(p * rows, (p + 1) * rows), gamma.value, beta.value,
                           y_MC.Rows(p * rows, (p + 1) * rows), PartOf(*mean_C, p),
                           PartOf(*variance_C, p));
  }
  return y_MC;
}

// The parts are of the own rows.
void MicroBatchNorm::GradientOfAll(const LayerContext& ctx, const Tensor& dy_MC, const Tensor& x_MC,
                                   const Parameter& gamma, const Tensor& mean_C,
                                   const Tensor& variance_C, const Tensor& dgamma_part_C,
                                   const Tensor& dbeta_part_C) {
  Backend& b = *ctx.backend;
  b.batch_norm().GradientSums(dy_MC, x_MC, mean_C, variance_C, dgamma_part_C, dbeta_part_C);
  const Tensor sums_2C = b.AllocateFloats({2, mean_C.size()});
  const Tensor dgamma_C = sums_2C.Rows(0, 1).Reshape(mean_C.shape());
  const Tensor dbeta_C = sums_2C.Rows(1, 2).Reshape(mean_C.shape());
  b.Copy(dgamma_part_C, dgamma_C);
  b.Copy(dbeta_part_C, dbeta_C);
  ctx.copies->Sum(sums_2C);
  b.batch_norm().InputGradientOfSums(dy_MC, x_MC, gamma.value, mean_C, variance_C,
                                     {dgamma_C, dbeta_C, x_MC.dim(0) * ctx.copies->size()}, dy_MC);
}

void MicroBatchNorm::InputGradient(const LayerContext& ctx, const Tensor& dy_MC, const Tensor& x_MC,
                                   const Parameter& gamma, const Tensor& mean_C,
                                   const Tensor& variance_C, std::vector<Tensor>* parts) {
  Backend& b = *ctx.backend;
  const Shape columns{x_MC.dim(1)};
  const Tensor dgamma_part_C = b.AllocateFloats(columns), dbeta_part_C = b.AllocateFloats(columns);
  const int64_t count = ctx.norm_parts, rows = x_MC.dim(0) / count;
  if (ctx.copies != nullptr) {
    GradientOfAll(ctx, dy_MC, x_MC, gamma, mean_C, variance_C, dgamma_part_C, dbeta_part_C);
  }
  for (int64_t p = 0; p < count && ctx.copies == nullptr; ++p) {
    const Tensor dy = dy_MC.Rows(p * rows, (p + 1) * rows), x = x_MC.Rows(p * rows, (p + 1) * rows);
    const Tensor dgamma = p == 0 ? dgamma_part_C : b.AllocateFloats(columns);
    const Tensor dbeta = p == 0 ? dbeta_part_C : b.AllocateFloats(columns);
    b.batch_norm().InputGradient(dy, x, gamma.value, PartOf(mean_C, p), PartOf(variance_C, p), dy,
                                 dgamma, dbeta);
    if (p > 0)
      WeightGradient(ctx, dgamma, dbeta, {Tensor(), dgamma_part_C}, {Tensor(), dbeta_part_C});
  }
  seen_[ctx.first_sample].rows = rows;
  std::vector<float>& statistics = seen_[ctx.first_sample].mean_and_variance;
  statistics = HostValues(PartOf(mean_C, 0));
  const std::vector<float> variance = HostValues(PartOf(variance_C, 0));
  statistics.insert(statistics.end(), variance.begin(), variance.end());
  parts->push_back(dgamma_part_C);
  parts->push_back(dbeta_part_C);
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
