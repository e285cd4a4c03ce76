// Runs what gpt_mlp_spec.h describes. x_MC, y_MC; M = samples * tokens.
#ifndef PIPELAB_MODELS_LAYERS_GPT_MLP_H_
#define PIPELAB_MODELS_LAYERS_GPT_MLP_H_

#include "models/layers/block_parts.h"
#include "models/layers/layer.h"

namespace pipelab {

class GptMlp : public UnaryLayer {
 public:
  explicit GptMlp(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  int64_t hidden_, inner_;
  ProductRows rows_;
  ResidualDropout residual_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_GPT_MLP_H_
