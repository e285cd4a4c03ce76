// Runs what subsample_spec.h describes.
#include <cstdint>
#include <memory>

#include "models/layers/layer.h"
#include "models/layers/makers.h"

namespace pipelab {
namespace {

class Subsample : public UnaryLayer {
 public:
  explicit Subsample(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash*) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash*) override;
  void WeightGradient(const LayerContext&, const Tensor&, LayerStash*) override {}

  int64_t height_, width_, channels_, row_, column_;
};

Subsample::Subsample(const LayerSpec& spec)
    : height_(WholeAttribute(spec, "height")),
      width_(WholeAttribute(spec, "width")),
      channels_(spec.output_shape[1]),
      row_(WholeAttribute(spec, "row")),
      column_(WholeAttribute(spec, "column")) {}

// Two lines in a row of a matrix: a half of its columns is every second line. In these, two pixels
// in a row.
Tensor Subsample::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash*) {
  Backend& b = *ctx.backend;
  const int64_t pairs = ctx.samples * height_ / 2, line = width_ * channels_;
  const Tensor lines = b.Allocate({pairs, line});
  b.CopyColumns(x_MC.Reshape({pairs, 2 * line}), row_ * line, lines, 0, line);
  Tensor y_MC = b.Allocate({pairs * width_ / 2, channels_});
  b.CopyColumns(lines.Reshape({pairs * width_ / 2, 2 * channels_}), column_ * channels_, y_MC, 0,
                channels_);
  return y_MC;
}

Tensor Subsample::InputGradient(const LayerContext& ctx, const Tensor&, Tensor dy, LayerStash*) {
  Backend& b = *ctx.backend;
  const int64_t pairs = ctx.samples * height_ / 2, line = width_ * channels_;
  const Tensor lines = b.Allocate({pairs, line});
  b.Fill(lines, 0);
  b.CopyColumns(dy, 0, lines.Reshape({pairs * width_ / 2, 2 * channels_}), column_ * channels_,
                channels_);
  Tensor dx_MC = b.Allocate({ctx.samples * height_ * width_, channels_});
  b.Fill(dx_MC, 0);
  b.CopyColumns(lines, 0, dx_MC.Reshape({pairs, 2 * line}), row_ * line, line);
  return dx_MC;
}

}  // namespace

std::unique_ptr<Layer> MakeSubsample(const LayerSpec& spec) {
  return std::make_unique<Subsample>(spec);
}

}  // namespace pipelab
