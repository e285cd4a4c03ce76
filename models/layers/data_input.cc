#include "models/layers/data_input.h"

namespace pipelab {

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

}  // namespace pipelab
