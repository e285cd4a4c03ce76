// Runs what add_spec.h describes.
#include <memory>
#include <utility>
#include <vector>

#include "models/layers/layer.h"
#include "models/layers/makers.h"

namespace pipelab {
namespace {

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

Tensor Add::Forward(const LayerContext& ctx, absl::Span<const Tensor> inputs, LayerStash*) {
  Tensor y = ctx.backend->Allocate(inputs[0].shape());
  if (inputs.size() == 1) {
    ctx.backend->Copy(inputs[0], y);
    return y;
  }
  ctx.backend->Add(inputs[0], inputs[1], y);
  for (const Tensor& x : inputs.subspan(2)) ctx.backend->Add(y, x, y);
  return y;
}

std::vector<Tensor> Add::BackwardInput(const LayerContext& ctx, absl::Span<const Tensor>, Tensor dy,
                                       LayerStash*) {
  std::vector<Tensor> gradients(num_inputs_);
  for (size_t k = 1; k < num_inputs_; ++k) {
    gradients[k] = ctx.backend->Allocate(dy.shape());
    ctx.backend->Copy(dy, gradients[k]);
  }
  gradients[0] = std::move(dy);
  return gradients;
}

}  // namespace

std::unique_ptr<Layer> MakeAdd(const LayerSpec& spec) { return std::make_unique<Add>(spec); }

}  // namespace pipelab
