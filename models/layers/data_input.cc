// Runs what data_input_spec.h describes.
#include <memory>

#include "models/layers/layer.h"
#include "models/layers/makers.h"

namespace pipelab {
namespace {

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

DataInput::DataInput(const LayerSpec& spec)
    : sample_(spec.output_shape.begin(), spec.output_shape.end()) {}

Tensor DataInput::Run(const LayerContext& ctx, const Tensor&, LayerStash*) {
  Shape shape = sample_;
  shape[0] *= ctx.samples;
  Tensor y = ctx.backend->Allocate(shape);
  ctx.backend->Copy(ctx.batch->fields[0], y);
  return y;
}

Tensor DataInput::InputGradient(const LayerContext&, const Tensor&, Tensor, LayerStash*) {
  return Tensor();
}

void DataInput::WeightGradient(const LayerContext&, const Tensor&, LayerStash*) {}

}  // namespace

std::unique_ptr<Layer> MakeDataInput(const LayerSpec& spec) {
  return std::make_unique<DataInput>(spec);
}

}  // namespace pipelab
