#include "models/layers/concat.h"

namespace pipelab {
Concat::Concat(const LayerSpec& spec) : width_(spec.output_shape[1]) {
  for (const std::vector<int64_t>& shape : spec.input_shapes) widths_.push_back(shape[1]);
}

Tensor Concat::Forward(const LayerContext& ctx, absl::Span<const Tensor> inputs, LayerStash*) {
  Tensor y_MC = ctx.backend->Allocate({inputs[0].dim(0), width_});
  int64_t column = 0;
  for (size_t k = 0; k < widths_.size(); ++k) {
    ctx.backend->CopyColumns(inputs[k], 0, y_MC, column, widths_[k]);
    column += widths_[k];
  }
  return y_MC;
}

std::vector<Tensor> Concat::BackwardInput(const LayerContext& ctx, absl::Span<const Tensor>,
                                          Tensor dy, LayerStash*) {
  std::vector<Tensor> gradients;
  int64_t column = 0;
  for (int64_t width : widths_) {
    gradients.push_back(ctx.backend->Allocate({dy.dim(0), width}));
    ctx.backend->CopyColumns(dy, column, gradients.back(), 0, width);
    column += width;
  }
  return gradients;
}

}  // namespace pipelab
