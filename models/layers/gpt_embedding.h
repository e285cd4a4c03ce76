// Runs what gpt_embedding_spec.h describes: y_MC = table[token] + positions. M = samples * tokens.
#ifndef PIPELAB_MODELS_LAYERS_GPT_EMBEDDING_H_
#define PIPELAB_MODELS_LAYERS_GPT_EMBEDDING_H_

#include "models/layers/layer.h"

namespace pipelab {

class GptEmbedding : public Layer {
 public:
  explicit GptEmbedding(const LayerSpec& spec);

  Tensor Forward(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;
  Tensor BackwardInput(const LayerContext& ctx, const Tensor& x, Tensor dy,
                       LayerStash* stash) override;
  void BackwardWeight(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;

 private:
  int64_t tokens_, hidden_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_GPT_EMBEDDING_H_
