// The layer that gpt_attention_spec.h describes. x_MC, y_MC; M = samples * tokens, of a slice where
// it works on slices. Its passes are in gpt_attention.cc; what slices of the tokens, and devices
// with parts of them (parted_attention.h), need besides is in gpt_attention_parts.cc.
//
//   std::unique_ptr<Layer> layer = MakeGptAttention(graph.layers[1]);    // makers.h
#ifndef PIPELAB_MODELS_LAYERS_GPT_ATTENTION_H_
#define PIPELAB_MODELS_LAYERS_GPT_ATTENTION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/layers/block_parts.h"
#include "models/layers/layer.h"
#include "models/layers/parted_attention.h"
#include "models/specs/gpt_attention_spec.h"

namespace pipelab {

class GptAttention : public UnaryLayer {
 public:
  explicit GptAttention(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  using P = GptAttentionParameter;
  enum class Copying { kIn, kOut };

  // Places in the stash. The forward leaves the first six; the input gradient replaces q, k, v by
  // their gradient and adds the next two. "Mix" is the attention's output, "branch" what the
  // residual adds to x. Where devices exchange heads, q, k, v and kHeadMix, which else is empty,
  // are all tokens of the device's part of the heads. With norms of q and k what NormHeads gave is
  // from kHeads on, until the input gradient has their gammas' gradients in the place behind the
  // others.
  enum { kMean, kRstd, kMix, kQkv, kLse, kHeadMix, kDbranch, kDnorm, kDgammas };
  static constexpr int kHeads = kDbranch;
  // Places in the stash that the slices of a micro-batch share: q, k, v of its whole samples and
  // their gradient.
  enum { kSequence, kDsequence };

  const Parameter& At(int place) const { return all_.Of(parameters_, place); }

  AttentionShape ShapeFor(const LayerContext& ctx) const;
  bool has_norms() const { return !At(P::kQueryGamma).value.empty(); }
  // Norms of the heads of q and k, in place: what they were, and their reciprocal deviations.
  std::vector<Tensor> NormHeads(const LayerContext& ctx, const Tensor& qkv_MQ) const;
  // The same of their gradients, with what NormHeads gave. The gammas' gradients, in a new tensor.
  Tensor NormHeadsGradient(const LayerContext& ctx, absl::Span<const Tensor> heads,
                           const Tensor& dqkv_MQ) const;
  // Turns the pass's q and k, or their gradients back, where positions are rotary.
  void Rotate(const LayerContext& ctx, bool back, const Tensor& qkv_MQ) const;
  // Copies a slice's rows to (kIn) or from (kOut) their places in whole samples.
  void CopySlice(const LayerContext& ctx, Copying way, const Tensor& slice_MC,
                 const Tensor& sequence_MC) const;
  // Slices: puts q, k, v of the slice in their places among the samples', which it returns.
  Tensor JoinSequence(const LayerContext& ctx, const Tensor& qkv_MQ) const;
  // Slices: the gradient of the slice's q, k, v, complete once it is the slice's turn. Gives up
  // dmix and lse.
  Tensor SliceGradient(const LayerContext& ctx, Tensor dmix_MW, std::vector<Tensor>* kept) const;

  // With caches: keys and values of the runs' tokens go to their places, and each run attends to
  // what its slot has.
  void AttendCached(const LayerContext& ctx, const Tensor& qkv_MQ, const Tensor& mix_MW,
                    const Tensor& lse) const;

  // Numbers of a row's queries, keys and values.
  std::vector<int64_t> Columns() const;
  // The heads of devices with parts of the tokens.
  static CrossAttentionShape Heads(const LayerSpec& spec);
  // The ones of q, k, v that the others need, in a new tensor.
  Tensor OwnKeys(const LayerContext& ctx, const Tensor& qkv_MQ) const;
  // The gradient of the own q, k, v. Gives up dmix and lse.
  Tensor PartGradient(const LayerContext& ctx, Tensor dmix_MW, std::vector<Tensor>* kept) const;

  ProductRows rows_;
  int64_t tokens_, hidden_, heads_, kv_heads_, head_size_;
  int64_t width_, qkv_width_;  // of all heads; of q, k and v
  bool has_key_lengths_;
  double rotary_base_;
  PartedAttention context_;
  ResidualDropout residual_;
  PresentParameters all_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_GPT_ATTENTION_H_
