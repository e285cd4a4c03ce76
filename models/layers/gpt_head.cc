// Runs what gpt_head_spec.h describes. x_MC in, the loss out (LayerContext::loss_sum).
#include <cstdint>
#include <memory>
#include <utility>

#include "glog/logging.h"
#include "models/layers/block_parts.h"
#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/layers/tensor_peers.h"
#include "models/specs/gpt_head_spec.h"

namespace pipelab {
namespace {

class GptHead : public UnaryLayer {
 public:
  explicit GptHead(const LayerSpec& spec);

 private:
  using P = GptHeadParameter;

  // Places in the stash. The forward leaves the first four, lse where words are divided; the input
  // gradient writes its own over the logits and adds the last.
  enum { kMean, kRstd, kLogits, kLse, kDnorm };

  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  const Parameter& At(int place) const { return all_.Of(parameters_, place); }

  // norm_MC times the table, plus the bias, and the gradients of these.
  void Logits(const LayerContext& ctx, const Tensor& norm_MC, const Tensor& logits_MV) const;
  void LogitsInputGradient(const LayerContext& ctx, const Tensor& dlogits_MV,
                           const Tensor& dnorm_MC) const;
  void LogitsWeightGradient(const LayerContext& ctx, const Tensor& norm_MC,
                            const Tensor& dlogits_MV) const;

  // With caches: the logits behind the last token of each run that predicts, for who asks.
  void Predict(const LayerContext& ctx, const Tensor& x_MC) const;

  // Devices that divide the words make the loss together; leaves the logarithm of each row's sum
  // of exponentials in `lse_M`.
  double LossWithPeers(const LayerContext& ctx, const Tensor& logits_MV, const Tensor& lse_M) const;
  bool divided() const { return !words_.whole(); }
  int64_t first_word() const { return words_.part * vocabulary_; }

  ProductRows rows_;
  int64_t vocabulary_;  // the device's words
  ParameterCut words_;  // which
  bool own_weight_;     // [C, V] with a bias, instead of a table
  bool table_bias_;
  PresentParameters all_;
};

GptHead::GptHead(const LayerSpec& spec)
    : rows_(spec),
      own_weight_(Attribute(spec, "output_bias") != 0),
      table_bias_(spec.attributes.count(kTableBias) > 0),
      all_(spec, {"gamma", "beta", own_weight_ ? "w" : "table", "b"}) {
  const size_t place = spec.parameters.size() - (own_weight_ || table_bias_ ? 2 : 1);
  const ParameterSpec& table = spec.parameters[place];  // [V, C], or [C, V]
  vocabulary_ = table.shape[own_weight_ ? 1 : 0];
  words_ = table.cut;
}

void GptHead::Logits(const LayerContext& ctx, const Tensor& norm_MC,
                     const Tensor& logits_MV) const {
  const Tensor& table = At(P::kTable).value;
  if (own_weight_) {
    ctx.backend->Linear(norm_MC, table, At(P::kBias).value, logits_MV);
    return;
  }
  ctx.backend->LinearTransposed(norm_MC, table, logits_MV);
  if (table_bias_) AddToRows(ctx, At(P::kBias).value, logits_MV);
}

void GptHead::LogitsInputGradient(const LayerContext& ctx, const Tensor& dlogits_MV,
                                  const Tensor& dnorm_MC) const {
  const Tensor& table = At(P::kTable).value;
  if (own_weight_) {
    ctx.backend->LinearInputGradient(dlogits_MV, table, dnorm_MC);
  } else {
    ctx.backend->LinearTransposedInputGradient(dlogits_MV, table, dnorm_MC);
  }
}

void GptHead::LogitsWeightGradient(const LayerContext& ctx, const Tensor& norm_MC,
                                   const Tensor& dlogits_MV) const {
  const Tensor& dtable = At(P::kTable).gradient;
  if (own_weight_) {
    ctx.backend->LinearWeightGradient(norm_MC, dlogits_MV, dtable, At(P::kBias).gradient);
  } else {
    ctx.backend->LinearTransposedWeightGradient(norm_MC, dlogits_MV, dtable);
  }
}

double GptHead::LossWithPeers(const LayerContext& ctx, const Tensor& logits_MV,
                              const Tensor& lse_M) const {
  CHECK(ctx.predictions == nullptr) << "predictions of a part of the words";
  LossKernels& loss = ctx.backend->loss();
  const Tensor& targets_M = ctx.batch->fields[0];
  const Tensor sums_M = AllocateLike(ctx, lse_M), target_logits_M = AllocateLike(ctx, lse_M);
  loss.LargestLogits(logits_MV, lse_M);
  ctx.peers->Largest(lse_M);
  loss.SoftmaxSums(logits_MV, targets_M, first_word(), lse_M, sums_M, target_logits_M);
  SumOverPeers(ctx, sums_M);
  SumOverPeers(ctx, target_logits_M);
  return loss.CrossEntropyOfSums(targets_M, sums_M, target_logits_M, lse_M);
}

void GptHead::Predict(const LayerContext& ctx, const Tensor& x_MC) const {
  Backend& b = *ctx.backend;
  const int64_t count = PredictionsOf(ctx.cached->runs);
  if (count == 0) return;
  const Tensor last_NC = b.Allocate({count, x_MC.dim(1)});
  int64_t end = 0, n = 0;
  for (const TokenRun& run : ctx.cached->runs) {
    end += run.count;
    if (!run.predicts) continue;
    b.Copy(x_MC.Rows(end - 1, end), last_NC.Rows(n, n + 1));
    ++n;
  }
  const Tensor mean_N = AllocateMeans(ctx, At(P::kBeta), count), rstd_N = b.AllocateFloats({count});
  const Tensor norm_NC = NormAgain(ctx, last_NC, At(P::kGamma), At(P::kBeta), mean_N, rstd_N);
  const Tensor logits_NV = b.Allocate({count, vocabulary_});
  Logits(ctx, norm_NC, logits_NV);
  AddPredictions(ctx, logits_NV);
}

Tensor GptHead::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  if (ctx.cached != nullptr) {
    Predict(ctx, x_MC);
    return Tensor();
  }
  Backend& b = *ctx.backend;
  const int64_t own = x_MC.dim(0), m = rows_.all(own);
  Tensor mean_M = AllocateMeans(ctx, At(P::kBeta), own), rstd_M = b.AllocateFloats({own});
  const Tensor norm_MC =
      rows_.Gather(ctx, NormAgain(ctx, x_MC, At(P::kGamma), At(P::kBeta), mean_M, rstd_M));
  Tensor logits_MV = b.Allocate({m, vocabulary_});
  Logits(ctx, norm_MC, logits_MV);
  Tensor lse_M;
  if (divided()) {
    lse_M = b.AllocateFloats({m});
    *ctx.loss_sum += LossWithPeers(ctx, logits_MV, lse_M);
  } else {
    AddPredictions(ctx, logits_MV);
    *ctx.loss_sum += b.loss().CrossEntropy(logits_MV, ctx.batch->fields[0]);
  }
  stash->tensors = {std::move(mean_M), std::move(rstd_M), std::move(logits_MV), std::move(lse_M)};
  return Tensor();
}

Tensor GptHead::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor,
                              LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  const Tensor &logits_MV = kept[kLogits], &targets_M = ctx.batch->fields[0];
  if (divided()) {
    b.loss().CrossEntropyPartGradient(logits_MV, targets_M, first_word(), kept[kLse],
                                      ctx.loss_scale, logits_MV);
  } else {
    b.loss().CrossEntropyGradient(logits_MV, targets_M, ctx.loss_scale, logits_MV);
  }
  Tensor dnorm_MC = b.Allocate({rows_.all(x_MC.dim(0)), x_MC.dim(1)});
  LogitsInputGradient(ctx, kept[kLogits], dnorm_MC);
  dnorm_MC = rows_.Sum(ctx, std::move(dnorm_MC));
  Tensor dx_MC = AllocateLike(ctx, x_MC);
  b.LayerNormInputGradient(dnorm_MC, x_MC, At(P::kGamma).value, kept[kMean], kept[kRstd], dx_MC);
  kept[kLse] = Tensor();
  kept.push_back(std::move(dnorm_MC));
  return dx_MC;
}

void GptHead::WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  b.LayerNormWeightGradient(kept[kDnorm], x_MC, kept[kMean], kept[kRstd], At(P::kGamma).gradient,
                            At(P::kBeta).gradient);
  kept[kDnorm] = Tensor();
  if (table_bias_) AddRowsTo(ctx, kept[kLogits], At(P::kBias).gradient);
  const Tensor norm_MC = rows_.Gather(
      ctx, NormAgain(ctx, x_MC, At(P::kGamma), At(P::kBeta), kept[kMean], kept[kRstd]));
  LogitsWeightGradient(ctx, norm_MC, kept[kLogits]);
  kept.clear();
}

}  // namespace

std::unique_ptr<Layer> MakeGptHead(const LayerSpec& spec) {
  return std::make_unique<GptHead>(spec);
}

}  // namespace pipelab
