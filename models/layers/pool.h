// Runs what pool_spec.h describes.
#ifndef PIPELAB_MODELS_LAYERS_POOL_H_
#define PIPELAB_MODELS_LAYERS_POOL_H_

#include <cstdint>
#include <vector>

#include "models/layers/layer.h"
#include "models/layers/pool_spec.h"

namespace pipelab {

class Pool : public UnaryLayer {
 public:
  explicit Pool(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash*) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash*) override;
  void WeightGradient(const LayerContext&, const Tensor&, LayerStash*) override {}

  PoolingShape ShapeOf(const LayerContext& ctx) const;

  const PoolSizes sizes_;
  const std::vector<int64_t> output_shape_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_POOL_H_
