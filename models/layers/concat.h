// Runs what concat_spec.h describes. x_MCk, y_MC; C the sum of the Ck.
#ifndef PIPELAB_MODELS_LAYERS_CONCAT_H_
#define PIPELAB_MODELS_LAYERS_CONCAT_H_

#include <cstdint>
#include <vector>

#include "models/layers/layer.h"

namespace pipelab {

class Concat : public Layer {
 public:
  explicit Concat(const LayerSpec& spec);

  Tensor Forward(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                 LayerStash* stash) override;
  std::vector<Tensor> BackwardInput(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                                    Tensor dy, LayerStash* stash) override;
  void BackwardWeight(const LayerContext&, absl::Span<const Tensor>, LayerStash*) override {}

 private:
  std::vector<int64_t> widths_;
  int64_t width_;  // of all
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_CONCAT_H_
