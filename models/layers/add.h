// Runs what add_spec.h describes.
#ifndef PIPELAB_MODELS_LAYERS_ADD_H_
#define PIPELAB_MODELS_LAYERS_ADD_H_

#include <vector>

#include "models/layers/layer.h"

namespace pipelab {

class Add : public Layer {
 public:
  explicit Add(const LayerSpec& spec) : num_inputs_(spec.inputs.size()) {}

  Tensor Forward(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                 LayerStash* stash) override;
  std::vector<Tensor> BackwardInput(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                                    Tensor dy, LayerStash* stash) override;
  void BackwardWeight(const LayerContext&, absl::Span<const Tensor>, LayerStash*) override {}

 private:
  size_t num_inputs_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_ADD_H_
