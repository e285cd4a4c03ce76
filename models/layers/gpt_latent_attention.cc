// Runs what gpt_latent_attention_spec.h describes. x_MC, y_MC; M = samples * tokens, of which a
// device has O, its own, where a group splits rows.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "models/layers/block_parts.h"
#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/layers/parted_attention.h"
#include "models/layers/tensor_peers.h"
#include "models/specs/gpt_latent_attention_spec.h"

namespace pipelab {
namespace {

class GptLatentAttention : public UnaryLayer {
 public:
  explicit GptLatentAttention(const LayerSpec& spec);

 private:
  using P = GptLatentAttentionParameter;

  // Places in the stash. The forward leaves those up to kKeyRstd; the input gradient replaces q by
  // its gradient and keys and values by that of the up product, and adds the others. Where devices
  // exchange heads, q, keys and values and kHeadMix, which else is empty, are all tokens of the
  // device's part of the heads. "Mix" is the attention's output, "branch" what the residual adds to
  // x, kQueries and kLatent the latent rows in front of their norms.
  enum {
    kMean,
    kRstd,
    kMix,
    kQ,
    kKv,
    kLse,
    kHeadMix,
    kQueries,
    kQueryRstd,
    kLatent,
    kKeyRstd,
    kDbranch,
    kDnorm,
    kDqueries,
    kDlatent,
    kDrope,
    kDgammas,
    kPlaces
  };

  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  const Parameter& At(int place) const { return all_.Of(parameters_, place); }
  bool narrow() const { return latent_.query_rank > 0; }  // q's product is of low rank
  int64_t head_row() const { return latent_.head_size() + latent_.value_size; }
  // Numbers of a row: of q, of keys and values, of values.
  int64_t q() const { return heads_ * latent_.head_size(); }
  int64_t kv() const { return heads_ * head_row(); }
  int64_t v() const { return heads_ * latent_.value_size; }

  static CrossAttentionShape Heads(const LayerSpec& spec);
  // Turns the first numbers of each of so many heads, or their gradients back.
  void Rotate(const LayerContext& ctx, bool back, int64_t heads, int64_t stride,
              const Tensor& x) const;
  // x w, in a new tensor.
  Tensor Product(const LayerContext& ctx, const Tensor& x, int weights) const;
  // dy w^T, in a new tensor.
  Tensor ProductGradient(const LayerContext& ctx, const Tensor& dy, int weights) const;
  // The RMS norm of a latent row, in a new tensor; writes rstd.
  Tensor Normed(const LayerContext& ctx, const Tensor& x_OR, int gamma, const Tensor& rstd_O) const;
  // The gradient of the norm's input, in a new tensor; the gamma's is added to `dgamma`.
  Tensor NormedGradient(const LayerContext& ctx, const Tensor& dy_OR, const Tensor& x_OR, int gamma,
                        const Tensor& rstd_O, const Tensor& dgamma_R) const;
  // From those of q's input and of the up product to that of the norm's output.
  Tensor LatentGradient(const LayerContext& ctx, Tensor dq_in, std::vector<Tensor>* kept) const;
  // Keys and values of all heads side by side, from what is each head's own and the key of all.
  Tensor JoinKeys(const LayerContext& ctx, const Tensor& up_MU, const Tensor& rope_MR) const;

  ProductRows rows_;
  int64_t heads_;
  LatentHeads latent_;
  PartedAttention context_;
  double rotary_base_;
  ResidualDropout residual_;
  PresentParameters all_;
};

GptLatentAttention::GptLatentAttention(const LayerSpec& spec)
    : rows_(spec),
      heads_(WholeAttribute(spec, "heads")),
      latent_(LatentHeadsOf(spec)),
      context_(spec.context, rows_.all(spec.output_shape[0]), Heads(spec), /*padded=*/false),
      rotary_base_(Attribute(spec, "rotary_base")),
      residual_(spec),
      all_(spec, {"gamma", "beta", "wqa", "qgamma", "wqb", "wkva", "wkr", "kgamma", "wkvb", "wo"}) {
}

CrossAttentionShape GptLatentAttention::Heads(const LayerSpec& spec) {
  CrossAttentionShape shape;
  shape.heads = WholeAttribute(spec, "heads");
  shape.head_size = LatentHeadsOf(spec).head_size();
  shape.value_size = LatentHeadsOf(spec).value_size;
  shape.causal = true;
  shape.key_tile = WholeAttribute(spec, "key_tile");
  return shape;
}

void GptLatentAttention::Rotate(const LayerContext& ctx, bool back, int64_t heads, int64_t stride,
                                const Tensor& x) const {
  RotaryShape shape;
  shape.heads = heads;
  shape.head_size = latent_.rope_size;
  shape.stride = stride;
  shape.base = rotary_base_;
  context_.Rotate(ctx, shape, back, x);
}

Tensor GptLatentAttention::Product(const LayerContext& ctx, const Tensor& x, int weights) const {
  const Tensor& w = At(weights).value;
  Tensor y = ctx.backend->Allocate({x.dim(0), w.dim(1)});
  ctx.backend->Linear(x, w, Tensor(), y);
  return y;
}

Tensor GptLatentAttention::ProductGradient(const LayerContext& ctx, const Tensor& dy,
                                           int weights) const {
  const Tensor& w = At(weights).value;
  Tensor dx = ctx.backend->Allocate({dy.dim(0), w.dim(0)});
  ctx.backend->LinearInputGradient(dy, w, dx);
  return dx;
}

Tensor GptLatentAttention::Normed(const LayerContext& ctx, const Tensor& x_OR, int gamma,
                                  const Tensor& rstd_O) const {
  Tensor y_OR = AllocateLike(ctx, x_OR);
  ctx.backend->LayerNorm(x_OR, At(gamma).value, Tensor(), y_OR, Tensor(), rstd_O);
  return y_OR;
}

Tensor GptLatentAttention::NormedGradient(const LayerContext& ctx, const Tensor& dy_OR,
                                          const Tensor& x_OR, int gamma, const Tensor& rstd_O,
                                          const Tensor& dgamma_R) const {
  Tensor dx_OR = AllocateLike(ctx, x_OR);
  ctx.backend->LayerNormWeightGradient(dy_OR, x_OR, Tensor(), rstd_O, dgamma_R, Tensor());
  ctx.backend->LayerNormInputGradient(dy_OR, x_OR, At(gamma).value, Tensor(), rstd_O, dx_OR);
  return dx_OR;
}

Tensor GptLatentAttention::JoinKeys(const LayerContext& ctx, const Tensor& up_MU,
                                    const Tensor& rope_MR) const {
  const int64_t all = up_MU.dim(0) * heads_, own = latent_.nope_size + latent_.value_size;
  Tensor kv_MK = ctx.backend->Allocate({up_MU.dim(0), kv()});
  const Tensor heads = kv_MK.Reshape({all, head_row()});
  ctx.backend->CopyColumns(up_MU.Reshape({all, own}), 0, heads, latent_.rope_size, own);
  ctx.backend->attention().ShareHead(rope_MR, heads);
  return kv_MK;
}

Tensor GptLatentAttention::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  const int64_t own = x_MC.dim(0), m = rows_.all(own);
  kept.resize(kKeyRstd + 1);
  kept[kMean] = AllocateMeans(ctx, At(P::kBeta), own);
  kept[kRstd] = b.AllocateFloats({own});
  Tensor q_in = NormAgain(ctx, x_MC, At(P::kGamma), At(P::kBeta), kept[kMean], kept[kRstd]);
  if (narrow()) kept[kQueries] = Product(ctx, q_in, P::kWqa);
  kept[kLatent] = Product(ctx, q_in, P::kWkva);
  Tensor rope_MR = Product(ctx, q_in, P::kWkr);
  if (narrow()) {
    q_in = Tensor();
    kept[kQueryRstd] = b.AllocateFloats({own});
    q_in = Normed(ctx, kept[kQueries], P::kQueryGamma, kept[kQueryRstd]);
  }
  q_in = rows_.Gather(ctx, std::move(q_in));
  kept[kQ] = Product(ctx, q_in, P::kWqb);
  q_in = Tensor();
  Rotate(ctx, /*back=*/false, heads_, latent_.head_size(), kept[kQ]);
  kept[kKeyRstd] = b.AllocateFloats({own});
  Tensor latent_MR = rows_.Gather(ctx, Normed(ctx, kept[kLatent], P::kKeyGamma, kept[kKeyRstd]));
  Tensor up_MU = Product(ctx, latent_MR, P::kWkvb);
  latent_MR = Tensor();
  rope_MR = rows_.Gather(ctx, std::move(rope_MR));
  Rotate(ctx, /*back=*/false, 1, 0, rope_MR);
  kept[kKv] = JoinKeys(ctx, up_MU, rope_MR);
  up_MU = rope_MR = Tensor();
  kept[kQ] = context_.ToHeads(ctx, std::move(kept[kQ]), {q()});
  kept[kKv] = context_.ToHeads(ctx, std::move(kept[kKv]), {kv()});
  Tensor keys_NK = context_.Keys(ctx, kept[kKv]);
  const int64_t parts = context_.head_parts();
  kept[kMix] = b.Allocate({m * parts, v() / parts});
  kept[kLse] = b.AllocateFloats(context_.SumsShape(ctx));
  context_.Forward(ctx, kept[kQ], std::move(keys_NK), kept[kMix], kept[kLse]);
  if (context_.by_heads()) kept[kHeadMix] = kept[kMix];
  kept[kMix] = context_.ToTokens(ctx, std::move(kept[kMix]), {v()});
  return residual_.Join(ctx, x_MC, rows_.Sum(ctx, Product(ctx, kept[kMix], P::kWo)));
}

Tensor GptLatentAttention::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                                         LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  kept.resize(kPlaces);
  const int64_t m = rows_.all(x_MC.dim(0));
  kept[kDbranch] = rows_.Gather(ctx, residual_.BranchGradient(ctx, dy));
  Tensor dmix_MV = ProductGradient(ctx, kept[kDbranch], P::kWo);
  dmix_MV = context_.ToHeads(ctx, std::move(dmix_MV), {v()});
  Tensor keys_NK = context_.Keys(ctx, std::move(kept[kKv]));
  Tensor dq_MQ = AllocateLike(ctx, kept[kQ]);
  const Tensor& mix = kept[context_.by_heads() ? kHeadMix : kMix];
  Tensor dkv_MK =
      context_.Gradient(ctx, dmix_MV, kept[kQ], std::move(keys_NK), mix, kept[kLse], dq_MQ);
  dmix_MV = kept[kLse] = kept[kHeadMix] = kept[kKv] = kept[kQ] = Tensor();
  kept[kQ] = context_.ToTokens(ctx, std::move(dq_MQ), {q()});
  dkv_MK = context_.ToTokens(ctx, std::move(dkv_MK), {kv()});
  Rotate(ctx, /*back=*/true, heads_, latent_.head_size(), kept[kQ]);
  Tensor dq_in = rows_.Sum(ctx, ProductGradient(ctx, kept[kQ], P::kWqb));

  const int64_t own = latent_.nope_size + latent_.value_size;
  kept[kDrope] = b.Allocate({m, latent_.rope_size});
  kept[kKv] = b.Allocate({m, heads_ * own});
  {
    const Tensor heads = dkv_MK.Reshape({m * heads_, head_row()});
    b.attention().ShareHeadGradient(heads, kept[kDrope]);
    b.CopyColumns(heads, latent_.rope_size, kept[kKv].Reshape({m * heads_, own}), 0, own);
  }
  dkv_MK = Tensor();
  Rotate(ctx, /*back=*/true, 1, 0, kept[kDrope]);
  kept[kDrope] = rows_.Sum(ctx, std::move(kept[kDrope]));
  kept[kDnorm] = LatentGradient(ctx, std::move(dq_in), &kept);
  return NormResidualGradient(ctx, kept[kDnorm], x_MC, At(P::kGamma), kept[kMean], kept[kRstd], dy);
}

Tensor GptLatentAttention::LatentGradient(const LayerContext& ctx, Tensor dq_in,
                                          std::vector<Tensor>* stash) const {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = *stash;
  const int64_t split = latent_.query_rank;
  Tensor dlatent_OR = rows_.Sum(ctx, ProductGradient(ctx, kept[kKv], P::kWkvb));
  kept[kDgammas] = b.AllocateFloats({split + latent_.rank});
  b.Fill(kept[kDgammas], 0);
  if (narrow()) {
    kept[kDqueries] = NormedGradient(ctx, dq_in, kept[kQueries], P::kQueryGamma, kept[kQueryRstd],
                                     kept[kDgammas].Rows(0, split));
    dq_in = Tensor();
  }
  kept[kDlatent] = NormedGradient(ctx, dlatent_OR, kept[kLatent], P::kKeyGamma, kept[kKeyRstd],
                                  kept[kDgammas].Rows(split, split + latent_.rank));
  dlatent_OR = Tensor();
  Tensor dnorm_OC = narrow() ? ProductGradient(ctx, kept[kDqueries], P::kWqa) : std::move(dq_in);
  const Tensor part_OC = ProductGradient(ctx, kept[kDlatent], P::kWkva);
  b.Add(dnorm_OC, part_OC, dnorm_OC);
  b.LinearInputGradient(kept[kDrope], At(P::kWkr).value, part_OC);
  b.Add(dnorm_OC, part_OC, dnorm_OC);
  return dnorm_OC;
}

void GptLatentAttention::WeightGradient(const LayerContext& ctx, const Tensor& x_MC,
                                        LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  const auto add = [&](const Tensor& x, const Tensor& dy, int weights) {
    b.LinearWeightGradient(x, dy, At(weights).gradient, Tensor());
  };
  add(kept[kMix], kept[kDbranch], P::kWo);
  kept[kMix] = kept[kDbranch] = Tensor();
  b.LayerNormWeightGradient(kept[kDnorm], x_MC, kept[kMean], kept[kRstd], At(P::kGamma).gradient,
                            At(P::kBeta).gradient);
  kept[kDnorm] = Tensor();
  Tensor q_in = NormAgain(ctx, x_MC, At(P::kGamma), At(P::kBeta), kept[kMean], kept[kRstd]);
  if (narrow()) add(q_in, kept[kDqueries], P::kWqa);
  add(q_in, kept[kDlatent], P::kWkva);
  add(q_in, kept[kDrope], P::kWkr);
  if (narrow()) {
    q_in = Tensor();
    q_in = Normed(ctx, kept[kQueries], P::kQueryGamma, kept[kQueryRstd]);
  }
  q_in = rows_.Gather(ctx, std::move(q_in));
  add(q_in, kept[kQ], P::kWqb);
  q_in = Tensor();
  add(rows_.Gather(ctx, Normed(ctx, kept[kLatent], P::kKeyGamma, kept[kKeyRstd])), kept[kKv],
      P::kWkvb);
  const int64_t split = latent_.query_rank;
  const Tensor& dgammas = kept[kDgammas];
  if (narrow()) {
    b.Add(At(P::kQueryGamma).gradient, dgammas.Rows(0, split), At(P::kQueryGamma).gradient);
  }
  b.Add(At(P::kKeyGamma).gradient, dgammas.Rows(split, split + latent_.rank),
        At(P::kKeyGamma).gradient);
  kept.clear();
}

}  // namespace

std::unique_ptr<Layer> MakeGptLatentAttention(const LayerSpec& spec) {
  return std::make_unique<GptLatentAttention>(spec);
}

}  // namespace pipelab
