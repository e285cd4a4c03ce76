// Runs what embedding_bag_spec.h describes. y_MC, a row a sample.
#ifndef PIPELAB_MODELS_LAYERS_EMBEDDING_BAG_H_
#define PIPELAB_MODELS_LAYERS_EMBEDDING_BAG_H_

#include <cstdint>

#include "models/layers/layer.h"

namespace pipelab {

class EmbeddingBag : public UnaryLayer {
 public:
  explicit EmbeddingBag(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;

  int64_t width_;
  BagMode mode_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_EMBEDDING_BAG_H_
