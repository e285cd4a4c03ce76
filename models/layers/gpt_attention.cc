#include "models/layers/gpt_attention.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "models/layers/exchanged_attention.h"
#include "models/layers/makers.h"
#include "models/layers/tensor_peers.h"

namespace pipelab {

GptAttention::GptAttention(const LayerSpec& spec)
    : rows_(spec),
      tokens_(rows_.all(spec.output_shape[0])),
      hidden_(spec.output_shape[1]),
      heads_(WholeAttribute(spec, "heads")),
      kv_heads_(WholeAttribute(spec, "kv_heads")),
      head_size_(WholeAttribute(spec, "head_size")),
      width_(heads_ * head_size_),
      qkv_width_(width_ + 2 * kv_heads_ * head_size_),
      has_key_lengths_(!spec.data.empty()),
      rotary_base_(Attribute(spec, "rotary_base")),
      context_(spec.context, tokens_, Heads(spec), has_key_lengths_),
      residual_(spec),
      all_(spec, {"gamma", "beta", "wqkv", "bqkv", "wo", "bo", "qgamma", "kgamma"}) {}

AttentionShape GptAttention::ShapeFor(const LayerContext& ctx) const {
  AttentionShape shape;
  shape.samples = ctx.samples;
  shape.tokens = tokens_ * context_.head_parts();
  shape.heads = heads_ / context_.head_parts();
  shape.kv_heads = kv_heads_ / context_.head_parts();
  shape.head_size = head_size_;
  const CrossAttentionShape& heads = context_.heads();
  shape.causal = heads.causal;
  shape.window = heads.window;
  shape.key_tile = heads.key_tile;
  if (has_key_lengths_) shape.key_lengths = ctx.batch->HostIdsOf(0);
  shape.first_query = ctx.slice.first;
  shape.queries = ctx.slice.count;
  return shape;
}

std::vector<Tensor> GptAttention::NormHeads(const LayerContext& ctx, const Tensor& qkv_MQ) const {
  Backend& b = *ctx.backend;
  std::vector<Tensor> heads;
  const int64_t m = qkv_MQ.dim(0);
  for (const bool keys : {false, true}) {
    const int64_t width = keys ? kv_heads_ * head_size_ : width_, from = keys ? width_ : 0;
    heads.push_back(b.Allocate({m, width}));
    heads.push_back(b.AllocateFloats({m * width / head_size_}));
    b.CopyColumns(qkv_MQ, from, heads[heads.size() - 2], 0, width);
    const Tensor rows = heads[heads.size() - 2].Reshape({m * width / head_size_, head_size_});
    const Tensor normed = AllocateLike(ctx, rows);
    b.LayerNorm(rows, At(keys ? P::kKeyGamma : P::kQueryGamma).value, Tensor(), normed, Tensor(),
                heads.back());
    b.CopyColumns(normed.Reshape({m, width}), 0, qkv_MQ, from, width);
  }
  return heads;
}

Tensor GptAttention::NormHeadsGradient(const LayerContext& ctx, absl::Span<const Tensor> heads,
                                       const Tensor& dqkv_MQ) const {
  Backend& b = *ctx.backend;
  const int64_t m = dqkv_MQ.dim(0);
  Tensor dgammas_2D = b.AllocateFloats({2, head_size_});
  b.Fill(dgammas_2D, 0);
  for (const int keys : {0, 1}) {
    const int64_t width = keys == 1 ? kv_heads_ * head_size_ : width_;
    const int64_t from = keys == 1 ? width_ : 0;
    const Tensor rows = heads[2 * keys].Reshape({m * width / head_size_, head_size_});
    const Tensor& rstd = heads[2 * keys + 1];
    const Tensor dy = AllocateLike(ctx, rows), dx = AllocateLike(ctx, rows);
    b.CopyColumns(dqkv_MQ, from, dy.Reshape({m, width}), 0, width);
    b.LayerNormWeightGradient(dy, rows, Tensor(), rstd,
                              dgammas_2D.Rows(keys, keys + 1).Reshape({head_size_}), Tensor());
    b.LayerNormInputGradient(dy, rows, At(keys == 1 ? P::kKeyGamma : P::kQueryGamma).value,
                             Tensor(), rstd, dx);
    b.CopyColumns(dx.Reshape({m, width}), 0, dqkv_MQ, from, width);
  }
  // Whole parameters, of which each device has the gradient of its heads. With sequence parallelism
  // these are summed in the end.
  if (rows_.part().parts == 1) SumOverPeers(ctx, dgammas_2D);
  return dgammas_2D;
}

void GptAttention::Rotate(const LayerContext& ctx, bool back, const Tensor& qkv_MQ) const {
  if (rotary_base_ == 0) return;
  RotaryShape shape;
  shape.heads = heads_ + kv_heads_;  // of q, then of k
  shape.head_size = head_size_;
  shape.base = rotary_base_;
  if (ctx.cached == nullptr) {
    context_.Rotate(ctx, shape, back, qkv_MQ);
    return;
  }
  shape.samples = 1;
  int64_t row = 0;
  for (const TokenRun& run : ctx.cached->runs) {
    shape.tokens = run.count;
    shape.first_token = run.first;
    ctx.backend->attention().Rotate(shape, back, qkv_MQ.Rows(row, row + run.count));
    row += run.count;
  }
}

Tensor GptAttention::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  const int64_t own = x_MC.dim(0), m = rows_.all(own);
  Tensor mean_M = AllocateMeans(ctx, At(P::kBeta), own),
         rstd_M = AllocateDeviations(ctx, At(P::kGamma), own);
  Tensor norm_MC = NormAgain(ctx, x_MC, At(P::kGamma), At(P::kBeta), mean_M, rstd_M);
  norm_MC = rows_.Gather(ctx, std::move(norm_MC));
  Tensor qkv_MQ = b.Allocate({m, qkv_width_});
  b.Linear(norm_MC, At(P::kWqkv).value, At(P::kBqkv).value, qkv_MQ);
  norm_MC = Tensor();
  std::vector<Tensor> heads;
  if (has_norms()) heads = NormHeads(ctx, qkv_MQ);
  Rotate(ctx, /*back=*/false, qkv_MQ);
  if (!ctx.slice.whole()) qkv_MQ = JoinSequence(ctx, qkv_MQ);
  qkv_MQ = context_.ToHeads(ctx, std::move(qkv_MQ), Columns());
  Tensor keys_NK;  // with context parallelism
  if (context_.takes_keys()) keys_NK = context_.Keys(ctx, OwnKeys(ctx, qkv_MQ));
  const int64_t parts = context_.head_parts();
  Tensor mix_MW = b.Allocate({m * parts, width_ / parts});
  Tensor lse_SHT =
      b.AllocateFloats(ctx.cached != nullptr ? Shape{m, heads_} : context_.SumsShape(ctx));
  if (ctx.cached != nullptr) {
    AttendCached(ctx, qkv_MQ, mix_MW, lse_SHT);
  } else if (context_.takes_keys()) {
    context_.Forward(ctx, qkv_MQ, std::move(keys_NK), mix_MW, lse_SHT);
  } else if (ctx.exchange != nullptr) {
    ExchangedAttention(ctx, context_.heads(), tokens_).Forward(qkv_MQ, mix_MW, lse_SHT);
  } else {
    b.attention().Forward(ShapeFor(ctx), qkv_MQ, mix_MW, lse_SHT);
  }
  Tensor head_mix_NW = context_.by_heads() ? mix_MW : Tensor();
  mix_MW = context_.ToTokens(ctx, std::move(mix_MW), {width_});
  Tensor branch_MC = b.Allocate({m, hidden_});
  b.Linear(mix_MW, At(P::kWo).value, BiasOfOne(ctx, At(P::kBo)), branch_MC);
  branch_MC = rows_.Sum(ctx, std::move(branch_MC));
  if (!ctx.slice.whole()) qkv_MQ = Tensor();  // the slices have it together
  stash->tensors = {std::move(mean_M), std::move(rstd_M),  std::move(mix_MW),
                    std::move(qkv_MQ), std::move(lse_SHT), std::move(head_mix_NW)};
  stash->tensors.insert(stash->tensors.end(), heads.begin(), heads.end());
  return residual_.Join(ctx, x_MC, std::move(branch_MC));
}

Tensor GptAttention::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                                   LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  const int64_t m = rows_.all(x_MC.dim(0));
  Tensor dbranch_MC = rows_.Gather(ctx, residual_.BranchGradient(ctx, dy));
  Tensor dmix_MW = b.Allocate({m, width_});
  b.LinearInputGradient(dbranch_MC, At(P::kWo).value, dmix_MW);
  if (context_.takes_keys()) {
    kept[kQkv] = PartGradient(ctx, std::move(dmix_MW), &kept);
  } else if (ctx.slice.whole()) {
    dmix_MW = context_.ToHeads(ctx, std::move(dmix_MW), {width_});
    Tensor dqkv_MQ = AllocateLike(ctx, kept[kQkv]);
    const Tensor& mix = kept[context_.by_heads() ? kHeadMix : kMix];
    b.attention().Gradient(ShapeFor(ctx), dmix_MW, kept[kQkv], mix, kept[kLse], dqkv_MQ);
    dmix_MW = kept[kLse] = kept[kHeadMix] = kept[kQkv] = Tensor();
    kept[kQkv] = context_.ToTokens(ctx, std::move(dqkv_MQ), Columns());
  } else {
    kept[kQkv] = SliceGradient(ctx, std::move(dmix_MW), &kept);
  }
  Rotate(ctx, /*back=*/true, kept[kQkv]);
  Tensor dgammas_2D;
  if (has_norms()) {
    dgammas_2D = NormHeadsGradient(ctx, absl::MakeConstSpan(kept).subspan(kHeads), kept[kQkv]);
    kept.resize(kHeads);
  }
  Tensor dnorm_MC = b.Allocate({m, hidden_});
  b.LinearInputGradient(kept[kQkv], At(P::kWqkv).value, dnorm_MC);
  dnorm_MC = rows_.Sum(ctx, std::move(dnorm_MC));
  Tensor dx_MC = NormResidualGradient(ctx, dnorm_MC, x_MC, At(P::kGamma), kept[kMean], kept[kRstd],
                                      residual_.Around(dy));
  if (At(P::kGamma).value.empty()) dnorm_MC = Tensor();  // dx itself
  kept.insert(kept.end(), {std::move(dbranch_MC), std::move(dnorm_MC), std::move(dgammas_2D)});
  return dx_MC;
}

void GptAttention::WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  b.LinearWeightGradient(kept[kMix], kept[kDbranch], At(P::kWo).gradient,
                         BiasGradientOfOne(ctx, rows_.part(), At(P::kBo)));
  kept[kMix] = kept[kDbranch] = Tensor();
  NormWeightGradient(ctx, kept[kDnorm], x_MC, At(P::kGamma), At(P::kBeta), kept[kMean],
                     kept[kRstd]);
  kept[kDnorm] = Tensor();
  const Tensor norm_MC = rows_.Gather(
      ctx, NormAgain(ctx, x_MC, At(P::kGamma), At(P::kBeta), kept[kMean], kept[kRstd]));
  b.LinearWeightGradient(norm_MC, kept[kQkv], At(P::kWqkv).gradient, At(P::kBqkv).gradient);
  for (const int keys : {0, 1}) {
    if (!has_norms()) break;
    const Tensor& gradient = At(keys == 1 ? P::kKeyGamma : P::kQueryGamma).gradient;
    b.Add(gradient, kept[kDgammas].Rows(keys, keys + 1).Reshape({head_size_}), gradient);
  }
  kept.clear();
}

std::unique_ptr<Layer> MakeGptAttention(const LayerSpec& spec) {
  return std::make_unique<GptAttention>(spec);
}

}  // namespace pipelab
