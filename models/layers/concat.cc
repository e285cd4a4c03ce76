#include "models/layers/concat.h"

namespace pipelab {
namespace {

// The part [column, column + count) of each row to the part from `to_column` on, a row at a time.
void CopyColumns(Backend* backend, const Tensor& from_MC, int64_t column, int64_t count,
                 const Tensor& to_MD, int64_t to_column) {
  const int64_t width = from_MC.dim(1), to_width = to_MD.dim(1);
  const Tensor from = from_MC.Reshape({from_MC.size()}), to = to_MD.Reshape({to_MD.size()});
  for (int64_t i = 0; i < from_MC.dim(0); ++i) {
    const int64_t begin = i * width + column, to_begin = i * to_width + to_column;
    backend->Copy(from.Rows(begin, begin + count), to.Rows(to_begin, to_begin + count));
  }
}

}  // namespace

Concat::Concat(const LayerSpec& spec) : width_(spec.output_shape[1]) {
  for (const std::vector<int64_t>& shape : spec.input_shapes) widths_.push_back(shape[1]);
}

Tensor Concat::Forward(const LayerContext& ctx, absl::Span<const Tensor> inputs, LayerStash*) {
  Tensor y_MC = ctx.backend->Allocate({inputs[0].dim(0), width_});
  int64_t column = 0;
  for (size_t k = 0; k < widths_.size(); ++k) {
    CopyColumns(ctx.backend, inputs[k], 0, widths_[k], y_MC, column);
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
    CopyColumns(ctx.backend, dy, column, width, gradients.back(), 0);
    column += width;
  }
  return gradients;
}

}  // namespace pipelab
