// Runs what gpt_attention_spec.h describes. x_MC, y_MC; M = samples * tokens.
#ifndef PIPELAB_MODELS_LAYERS_GPT_ATTENTION_H_
#define PIPELAB_MODELS_LAYERS_GPT_ATTENTION_H_

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

  int64_t tokens_, hidden_, heads_;
  ResidualDropout residual_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_GPT_ATTENTION_H_
