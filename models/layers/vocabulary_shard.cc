// Runs an output layer's part as vocabulary_parts.h describes it. x_MC in; out y_MK, whose columns
// are VocabularyColumn. v words of the part; M = samples * tokens.
//
// With p the part's softmax and w = e^(lse of the part - lse of all), which is the gradient at the
// first column, the logits' gradient is w p less the one-hot target, times the loss's scale. It is
// made of the logits and of lse of all = lse of the part - log w.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "models/layers/layer.h"
#include "models/layers/vocabulary_layers.h"
#include "models/specs/vocabulary_parts.h"

namespace pipelab {
namespace {

class VocabularyShard : public UnaryLayer {
 public:
  explicit VocabularyShard(const LayerSpec& spec)
      : first_(WholeAttribute(spec, "first")),
        words_(spec.parameters[0].shape[0]),
        vocabulary_(spec.data[0].limit),
        columns_(spec.output_shape[1]),
        local_gradient_(Attribute(spec, "local_gradient") != 0) {}

 private:
  using Column = VocabularyColumn;

  enum { kLogits, kLse };  // places in the stash

  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy_MK,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  void AddLocalGradient(const LayerContext& ctx, const Tensor& logits_Mv, const Tensor& lse_M,
                        const Tensor& y_MK) const;
  // Over the logits.
  void LogitsGradient(const LayerContext& ctx, const LayerStash& stash) const;

  int64_t first_, words_, vocabulary_, columns_;
  bool local_gradient_;
};

Tensor VocabularyShard::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  CHECK(b.activation_type() == DataType::kFloat32) << "sums of exponentials in few digits";
  const int64_t m = x_MC.dim(0);
  const Tensor& targets_M = ctx.batch->fields[0];
  Tensor logits_Mv = b.Allocate({m, words_}), lse_M = b.AllocateFloats({m});
  b.LinearTransposed(x_MC, parameters_[0].value, logits_Mv);
  Tensor y_MK = b.Allocate({m, columns_});
  {
    const Tensor sums_M = b.AllocateFloats({m}), target_logits_M = b.AllocateFloats({m});
    b.loss().LargestLogits(logits_Mv, lse_M);
    b.loss().SoftmaxSums(logits_Mv, targets_M, first_, lse_M, sums_M, target_logits_M);
    b.loss().CrossEntropyOfSums(targets_M, sums_M, target_logits_M, lse_M);
    b.CopyColumns(lse_M.Reshape({m, 1}), 0, y_MK, Column::kLse, 1);
    b.CopyColumns(target_logits_M.Reshape({m, 1}), 0, y_MK, Column::kTargetLogit, 1);
  }
  if (local_gradient_) AddLocalGradient(ctx, logits_Mv, lse_M, y_MK);
  stash->tensors = {std::move(logits_Mv), std::move(lse_M)};
  return y_MK;
}

void VocabularyShard::AddLocalGradient(const LayerContext& ctx, const Tensor& logits_Mv,
                                       const Tensor& lse_M, const Tensor& y_MK) const {
  Backend& b = *ctx.backend;
  const Tensor &targets_M = ctx.batch->fields[0], &table_vC = parameters_[0].value;
  const int64_t hidden = table_vC.dim(1);
  const Tensor rows_MC = b.Allocate({y_MK.dim(0), hidden});
  {
    const Tensor softmax_Mv = b.Allocate(logits_Mv.shape());
    b.loss().CrossEntropyPartGradient(logits_Mv, targets_M, /*first=*/vocabulary_, lse_M, 1,
                                      softmax_Mv);  // words that are nobody's target
    b.LinearTransposedInputGradient(softmax_Mv, table_vC, rows_MC);
  }
  b.CopyColumns(rows_MC, 0, y_MK, Column::kLocal, hidden);
  b.embedding().LookupPart(targets_M, first_, table_vC, Tensor(), rows_MC);
  b.CopyColumns(rows_MC, 0, y_MK, Column::kLocal + hidden, hidden);
}

void VocabularyShard::LogitsGradient(const LayerContext& ctx, const LayerStash& stash) const {
  const Tensor& logits_Mv = stash.tensors[kLogits];
  ctx.backend->loss().CrossEntropyPartGradient(logits_Mv, ctx.batch->fields[0], first_,
                                               stash.tensors[kLse], ctx.loss_scale, logits_Mv);
}

Tensor VocabularyShard::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy_MK,
                                      LayerStash* stash) {
  std::vector<float> lse_M = HostValues(stash->tensors[kLse]);
  const std::vector<float> dy = HostValues(dy_MK);
  for (size_t i = 0; i < lse_M.size(); ++i) {
    // A share too small for a float is none: e^-infinity.
    lse_M[i] -= std::log(dy[i * columns_ + Column::kLse] / ctx.loss_scale);
  }
  SetHostValues(stash->tensors[kLse], lse_M);
  if (local_gradient_) return Tensor();
  LogitsGradient(ctx, *stash);
  Tensor dx_MC = ctx.backend->Allocate(x_MC.shape());
  ctx.backend->LinearTransposedInputGradient(stash->tensors[kLogits], parameters_[0].value, dx_MC);
  stash->tensors.resize(1);
  return dx_MC;
}

void VocabularyShard::WeightGradient(const LayerContext& ctx, const Tensor& x_MC,
                                     LayerStash* stash) {
  if (local_gradient_) LogitsGradient(ctx, *stash);
  ctx.backend->LinearTransposedWeightGradient(x_MC, stash->tensors[kLogits],
                                              parameters_[0].gradient);
  stash->tensors.clear();
}

}  // namespace

std::unique_ptr<Layer> MakeVocabularyShard(const LayerSpec& spec) {
  return std::make_unique<VocabularyShard>(spec);
}

}  // namespace pipelab
