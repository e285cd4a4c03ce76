// Runs what embedding_bag_spec.h describes. y_MC, a row a sample.
#include <cstdint>
#include <memory>
#include <utility>

#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/specs/embedding_bag_spec.h"

namespace pipelab {
namespace {

class EmbeddingBag : public UnaryLayer {
 public:
  explicit EmbeddingBag(const LayerSpec& spec);

 private:
  using P = EmbeddingBagParameter;

  Tensor Run(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;

  int64_t width_;
  BagMode mode_;
};

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

}  // namespace

std::unique_ptr<Layer> MakeEmbeddingBag(const LayerSpec& spec) {
  return std::make_unique<EmbeddingBag>(spec);
}

}  // namespace pipelab
