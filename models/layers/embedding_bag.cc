#include "models/layers/embedding_bag.h"

#include <utility>

#include "models/layers/embedding_bag_spec.h"

namespace pipelab {

using P = EmbeddingBagParameter;

EmbeddingBag::EmbeddingBag(const LayerSpec& spec)
    : width_(spec.output_shape[1]),
      mode_(Attribute(spec, "mean") != 0 ? BagMode::kMean : BagMode::kSum) {}

Tensor EmbeddingBag::Run(const LayerContext& ctx, const Tensor&, LayerStash*) {
  Tensor y_MC = ctx.backend->Allocate({ctx.samples, width_});
  ctx.backend->embedding().Bag(ctx.batch->fields[0], parameters_[P::kTable].value, mode_, y_MC);
  return y_MC;
}

Tensor EmbeddingBag::InputGradient(const LayerContext&, const Tensor&, Tensor dy,
                                   LayerStash* stash) {
  stash->tensors = {std::move(dy)};
  return Tensor();
}

void EmbeddingBag::WeightGradient(const LayerContext& ctx, const Tensor&, LayerStash* stash) {
  ctx.backend->embedding().BagWeightGradient(ctx.batch->fields[0], stash->tensors[0], mode_,
                                             parameters_[P::kTable].gradient);
  stash->tensors.clear();
}

}  // namespace pipelab
