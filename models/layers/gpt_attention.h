// Runs what gpt_attention_spec.h describes. x_MC, y_MC; M = samples * tokens.
#ifndef PIPELAB_MODELS_LAYERS_GPT_ATTENTION_H_
#define PIPELAB_MODELS_LAYERS_GPT_ATTENTION_H_

#include "models/layers/block_parts.h"
#include "models/layers/layer.h"

namespace pipelab {

class GptAttention : public Layer {
 public:
  explicit GptAttention(const LayerSpec& spec);

  Tensor Forward(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor BackwardInput(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void BackwardWeight(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

 private:
  AttentionShape ShapeFor(const LayerContext& ctx) const;

  int64_t tokens_, hidden_, heads_;
  ResidualDropout residual_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_GPT_ATTENTION_H_
