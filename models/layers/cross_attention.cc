// Runs what cross_attention_spec.h describes. x_MC, memory_NC, y_MC; M = samples * tokens,
// N = samples * memory tokens.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "models/layers/block_parts.h"
#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/layers/tensor_peers.h"
#include "models/specs/cross_attention_spec.h"

namespace pipelab {
namespace {

class CrossAttention : public Layer {
 public:
  explicit CrossAttention(const LayerSpec& spec);

  Tensor Forward(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                 LayerStash* stash) override;
  std::vector<Tensor> BackwardInput(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                                    Tensor dy, LayerStash* stash) override;
  void BackwardWeight(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                      LayerStash* stash) override;

 private:
  using P = CrossAttentionParameter;

  // Places in the stash. The forward leaves the first six; the input gradient replaces q, k and v
  // by their gradients and adds the last two. "Mix" is the attention's output, "branch" what the
  // residual adds to x.
  enum { kMean, kRstd, kMix, kQ, kKv, kLse, kDbranch, kDnorm };
  enum { kX, kMemory };  // places in the inputs

  CrossAttentionShape ShapeFor(const LayerContext& ctx) const;

  ProductRows rows_;
  int64_t tokens_, memory_tokens_, heads_, head_size_, width_;  // width: of all heads
  bool has_key_lengths_;
  ResidualDropout residual_;
  int64_t hidden_;
};

CrossAttention::CrossAttention(const LayerSpec& spec)
    : rows_(spec),
      tokens_(rows_.all(spec.input_shapes[kX][0])),
      memory_tokens_(rows_.all(spec.input_shapes[kMemory][0])),
      heads_(WholeAttribute(spec, "heads")),
      head_size_(WholeAttribute(spec, "head_size")),
      width_(heads_ * head_size_),
      has_key_lengths_(!spec.data.empty()),
      residual_(spec),
      hidden_(spec.output_shape[1]) {}

CrossAttentionShape CrossAttention::ShapeFor(const LayerContext& ctx) const {
  CrossAttentionShape shape;
  shape.samples = ctx.samples;
  shape.queries = tokens_;
  shape.keys = memory_tokens_;
  shape.heads = heads_;
  shape.head_size = head_size_;
  if (has_key_lengths_) shape.key_lengths = ctx.batch->HostIdsOf(0);
  return shape;
}

Tensor CrossAttention::Forward(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                               LayerStash* stash) {
  Backend& b = *ctx.backend;
  const Tensor &x_MC = inputs[kX], &memory_NC = inputs[kMemory];
  const int64_t own = x_MC.dim(0), m = rows_.all(own);
  Tensor mean_M = b.AllocateFloats({own}), rstd_M = b.AllocateFloats({own});
  Tensor norm_MC =
      NormAgain(ctx, x_MC, parameters_[P::kGamma], parameters_[P::kBeta], mean_M, rstd_M);
  norm_MC = rows_.Gather(ctx, std::move(norm_MC));
  Tensor q_MW = b.Allocate({m, width_});
  b.Linear(norm_MC, parameters_[P::kWq].value, parameters_[P::kBq].value, q_MW);
  norm_MC = Tensor();
  Tensor all_memory_NC = rows_.Gather(ctx, memory_NC);
  Tensor kv_N2W = b.Allocate({all_memory_NC.dim(0), 2 * width_});
  b.Linear(all_memory_NC, parameters_[P::kWkv].value, parameters_[P::kBkv].value, kv_N2W);
  all_memory_NC = Tensor();
  Tensor mix_MW = b.Allocate({m, width_});
  Tensor lse_SHT = b.AllocateFloats({ctx.samples, heads_, tokens_});
  b.attention().CrossForward(ShapeFor(ctx), q_MW, kv_N2W, mix_MW, lse_SHT);
  Tensor branch_MC = b.Allocate({m, hidden_});
  b.Linear(mix_MW, parameters_[P::kWo].value, BiasOfOne(ctx, parameters_[P::kBo]), branch_MC);
  branch_MC = rows_.Sum(ctx, std::move(branch_MC));
  stash->tensors = {std::move(mean_M), std::move(rstd_M), std::move(mix_MW),
                    std::move(q_MW),   std::move(kv_N2W), std::move(lse_SHT)};
  return residual_.Join(ctx, x_MC, std::move(branch_MC));
}

std::vector<Tensor> CrossAttention::BackwardInput(const LayerContext& ctx,
                                                  absl::Span<const Tensor> inputs, Tensor dy,
                                                  LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  Tensor dbranch_MC = rows_.Gather(ctx, residual_.BranchGradient(ctx, dy));
  Tensor dmix_MW = AllocateLike(ctx, kept[kMix]);
  b.LinearInputGradient(dbranch_MC, parameters_[P::kWo].value, dmix_MW);
  Tensor dq_MW = AllocateLike(ctx, kept[kQ]), dkv_N2W = AllocateLike(ctx, kept[kKv]);
  b.attention().CrossGradient(ShapeFor(ctx), dmix_MW, kept[kQ], kept[kKv], kept[kMix], kept[kLse],
                              dq_MW, dkv_N2W);
  dmix_MW = kept[kLse] = Tensor();
  kept[kQ] = std::move(dq_MW);
  kept[kKv] = std::move(dkv_N2W);
  Tensor dnorm_MC = b.Allocate({rows_.all(inputs[kX].dim(0)), hidden_});
  b.LinearInputGradient(kept[kQ], parameters_[P::kWq].value, dnorm_MC);
  dnorm_MC = rows_.Sum(ctx, std::move(dnorm_MC));
  std::vector<Tensor> gradients = {
      NormResidualGradient(ctx, dnorm_MC, inputs[kX], parameters_[P::kGamma], kept[kMean],
                           kept[kRstd], dy),
      b.Allocate({rows_.all(inputs[kMemory].dim(0)), inputs[kMemory].dim(1)})};
  b.LinearInputGradient(kept[kKv], parameters_[P::kWkv].value, gradients[kMemory]);
  gradients[kMemory] = rows_.Sum(ctx, std::move(gradients[kMemory]));
  kept.insert(kept.end(), {std::move(dbranch_MC), std::move(dnorm_MC)});
  return gradients;
}

void CrossAttention::BackwardWeight(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                                    LayerStash* stash) {
  Backend& b = *ctx.backend;
  const Tensor& x_MC = inputs[kX];
  std::vector<Tensor>& kept = stash->tensors;
  b.LinearWeightGradient(kept[kMix], kept[kDbranch], parameters_[P::kWo].gradient,
                         BiasGradientOfOne(ctx, rows_.part(), parameters_[P::kBo]));
  kept[kMix] = kept[kDbranch] = Tensor();
  b.LinearWeightGradient(rows_.Gather(ctx, inputs[kMemory]), kept[kKv],
                         parameters_[P::kWkv].gradient, parameters_[P::kBkv].gradient);
  kept[kKv] = Tensor();
  b.LayerNormWeightGradient(kept[kDnorm], x_MC, kept[kMean], kept[kRstd],
                            parameters_[P::kGamma].gradient, parameters_[P::kBeta].gradient);
  kept[kDnorm] = Tensor();
  const Tensor norm_MC =
      rows_.Gather(ctx, NormAgain(ctx, x_MC, parameters_[P::kGamma], parameters_[P::kBeta],
                                  kept[kMean], kept[kRstd]));
  b.LinearWeightGradient(norm_MC, kept[kQ], parameters_[P::kWq].gradient,
                         parameters_[P::kBq].gradient);
  kept.clear();
}

}  // namespace

std::unique_ptr<Layer> MakeCrossAttention(const LayerSpec& spec) {
  return std::make_unique<CrossAttention>(spec);
}

}  // namespace pipelab
