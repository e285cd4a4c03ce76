// Runs what patch_embedding_spec.h describes: y_MC = patches_MK w + b + positions. M = samples *
// tokens.
#ifndef PIPELAB_MODELS_LAYERS_PATCH_EMBEDDING_H_
#define PIPELAB_MODELS_LAYERS_PATCH_EMBEDDING_H_

#include "models/layers/layer.h"
#include "models/layers/patch_embedding_spec.h"

namespace pipelab {

class PatchEmbedding : public UnaryLayer {
 public:
  explicit PatchEmbedding(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;
  // The image's patches as rows.
  Tensor Patches(const LayerContext& ctx) const;

  const PatchEmbeddingSizes sizes_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_PATCH_EMBEDDING_H_
