// Runs what data_input_spec.h describes.
#ifndef PIPELAB_MODELS_LAYERS_DATA_INPUT_H_
#define PIPELAB_MODELS_LAYERS_DATA_INPUT_H_

#include "models/layers/layer.h"

namespace pipelab {

class DataInput : public UnaryLayer {
 public:
  explicit DataInput(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;

  Shape sample_;  // of the output
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_DATA_INPUT_H_
