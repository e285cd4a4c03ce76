// Runs what concat_spec.h describes. x_MCk, y_MC; C the sum of the Ck.
#include <cstdint>
#include <memory>
#include <vector>

#include "models/layers/layer.h"
#include "models/layers/makers.h"

namespace pipelab {
namespace {

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

}  // namespace

std::unique_ptr<Layer> MakeConcat(const LayerSpec& spec) { return std::make_unique<Concat>(spec); }

}  // namespace pipelab
