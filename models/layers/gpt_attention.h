// Runs what gpt_attention_spec.h describes. x_MC, y_MC; M = samples * tokens, of a slice where it
// works on slices.
#ifndef PIPELAB_MODELS_LAYERS_GPT_ATTENTION_H_
#define PIPELAB_MODELS_LAYERS_GPT_ATTENTION_H_

#include <cstdint>
#include <vector>

#include "models/layers/block_parts.h"
#include "models/layers/layer.h"

namespace pipelab {

class GptAttention : public UnaryLayer {
 public:
  explicit GptAttention(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  AttentionShape ShapeFor(const LayerContext& ctx) const;
  // Slices: puts q, k, v of the slice in their places among the samples', which it returns.
  Tensor JoinSequence(const LayerContext& ctx, Tensor qkv_M3W) const;
  // Slices: the gradient of the slice's q, k, v, complete once it is the slice's turn. Gives up
  // dmix and lse.
  Tensor SliceGradient(const LayerContext& ctx, Tensor dmix_MW, std::vector<Tensor>* kept) const;

  ProductRows rows_;
  int64_t tokens_, hidden_, heads_, head_size_, width_;  // width: of all heads
  bool causal_, has_key_lengths_;
  ResidualDropout residual_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_GPT_ATTENTION_H_
