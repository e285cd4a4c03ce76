// Runs the loss of vocabulary_parts.h: of the parts' y_MK the loss (LayerContext::loss_sum), and
// backward the gradient of each part's numbers; with local gradients that of the parts' input, too.
// A few numbers a row, for the host.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "models/layers/layer.h"
#include "models/layers/vocabulary_layers.h"
#include "models/specs/vocabulary_parts.h"

namespace pipelab {
namespace {

class VocabularyLoss : public Layer {
 public:
  explicit VocabularyLoss(const LayerSpec& spec)
      : local_gradient_(Attribute(spec, "local_gradient") != 0) {}

  Tensor Forward(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                 LayerStash* stash) override;
  std::vector<Tensor> BackwardInput(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                                    Tensor dy, LayerStash* stash) override;
  void BackwardWeight(const LayerContext&, absl::Span<const Tensor>, LayerStash*) override {}

 private:
  using Column = VocabularyColumn;

  absl::Span<const Tensor> Parts(absl::Span<const Tensor> inputs) const {
    return inputs.subspan(local_gradient_ ? 1 : 0);
  }
  // One column of a part's rows.
  static std::vector<float> Numbers(const Tensor& y_MK, int column);
  // dx_MC += the part's share: its softmax times table by its weight, less its targets' rows.
  static void AddLocal(const LayerContext& ctx, const Tensor& y_MK,
                       const std::vector<float>& weights, const std::vector<float>& targets,
                       const Tensor& dx_MC);

  bool local_gradient_;
};

std::vector<float> VocabularyLoss::Numbers(const Tensor& y_MK, int column) {
  const std::vector<float> all = HostValues(y_MK);
  const int64_t columns = y_MK.dim(1);
  std::vector<float> numbers(y_MK.dim(0));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = all[i * columns + column];
  return numbers;
}

Tensor VocabularyLoss::Forward(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                               LayerStash* stash) {
  const absl::Span<const Tensor> parts = Parts(inputs);
  const int64_t m = parts[0].dim(0);
  std::vector<float> most(m, -std::numeric_limits<float>::infinity());
  std::vector<double> sum(m), target(m);
  std::vector<std::vector<float>> lse;
  for (const Tensor& y_MK : parts) {
    lse.push_back(Numbers(y_MK, Column::kLse));
    const std::vector<float> targets = Numbers(y_MK, Column::kTargetLogit);
    for (int64_t i = 0; i < m; ++i) {
      most[i] = std::max(most[i], lse.back()[i]);
      target[i] += targets[i];
    }
  }
  const absl::Span<const int32_t> targets_M = ctx.batch->HostIdsOf(0);
  std::vector<float> lse_M(m);
  for (int64_t i = 0; i < m; ++i) {
    for (const std::vector<float>& part : lse) sum[i] += std::exp(double{part[i]} - most[i]);
    const double all = most[i] + std::log(sum[i]);
    lse_M[i] = static_cast<float>(all);
    if (targets_M[i] != kNoTarget) *ctx.loss_sum += all - target[i];
  }
  stash->tensors = {ctx.backend->AllocateFloats({m})};
  SetHostValues(stash->tensors[0], lse_M);
  return Tensor();
}

std::vector<Tensor> VocabularyLoss::BackwardInput(const LayerContext& ctx,
                                                  absl::Span<const Tensor> inputs, Tensor,
                                                  LayerStash* stash) {
  const std::vector<float> lse_M = HostValues(stash->tensors[0]);
  const absl::Span<const int32_t> targets_M = ctx.batch->HostIdsOf(0);
  std::vector<float> target(lse_M.size());
  for (size_t i = 0; i < target.size(); ++i) {
    target[i] = targets_M[i] == kNoTarget ? 0 : -ctx.loss_scale;
  }
  std::vector<Tensor> gradients;
  if (local_gradient_) {
    gradients.push_back(ctx.backend->Allocate(inputs[0].shape()));
    ctx.backend->Fill(gradients[0], 0);
  }
  for (const Tensor& y_MK : Parts(inputs)) {
    const int64_t columns = y_MK.dim(1);
    std::vector<float> weight = Numbers(y_MK, Column::kLse);
    for (size_t i = 0; i < weight.size(); ++i) {
      weight[i] = -target[i] * std::exp(weight[i] - lse_M[i]);
    }
    Tensor dy_MK = ctx.backend->Allocate(y_MK.shape());
    FillOnHost<float>(dy_MK, [&](absl::Span<float> all) {
      std::fill(all.begin(), all.end(), 0.0f);
      for (size_t i = 0; i < weight.size(); ++i) {
        all[i * columns + Column::kLse] = weight[i];
        all[i * columns + Column::kTargetLogit] = target[i];
      }
    });
    gradients.push_back(std::move(dy_MK));
    if (local_gradient_) AddLocal(ctx, y_MK, weight, target, gradients[0]);
  }
  stash->tensors.clear();
  return gradients;
}

void VocabularyLoss::AddLocal(const LayerContext& ctx, const Tensor& y_MK,
                              const std::vector<float>& weights, const std::vector<float>& targets,
                              const Tensor& dx_MC) {
  Backend& b = *ctx.backend;
  const int64_t m = dx_MC.dim(0), hidden = dx_MC.dim(1);
  const Tensor rows_MC = b.Allocate(dx_MC.shape());
  Routing rows;  // each by a weight of its own
  rows.weights_MK = b.AllocateFloats({m, 1});
  rows.places_MK = b.arena().Allocate(DataType::kInt32, {m, 1}, MemoryKind::kActivation);
  FillOnHost<int32_t>(rows.places_MK, [](absl::Span<int32_t> places) {
    std::iota(places.begin(), places.end(), 0);
  });
  for (const auto& [column, by] : {std::make_pair(int64_t{Column::kLocal}, &weights),
                                   std::make_pair(Column::kLocal + hidden, &targets)}) {
    b.CopyColumns(y_MK, column, rows_MC, 0, hidden);
    SetHostValues(rows.weights_MK, *by);
    b.experts().Weigh(rows, rows_MC);
    b.Add(dx_MC, rows_MC, dx_MC);
  }
}

}  // namespace

std::unique_ptr<Layer> MakeVocabularyLoss(const LayerSpec& spec) {
  return std::make_unique<VocabularyLoss>(spec);
}

}  // namespace pipelab
