// Runs what pool_spec.h describes.
#include <cstdint>
#include <memory>
#include <vector>

#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/specs/pool_spec.h"

namespace pipelab {
namespace {

class Pool : public UnaryLayer {
 public:
  explicit Pool(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash*) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash*) override;
  void WeightGradient(const LayerContext&, const Tensor&, LayerStash*) override {}

  PoolingShape ShapeOf(const LayerContext& ctx) const;
  // A sample a row.
  Shape InRows(const LayerContext& ctx) const {
    return {ctx.samples, sizes_.height * sizes_.width * sizes_.channels};
  }

  const PoolSizes sizes_;
  const std::vector<int64_t> output_shape_;
};

Shape InImage(const PoolingShape& s) { return {s.samples, s.height, s.width, s.channels}; }
Shape OutImage(const PoolingShape& s) {
  return {s.samples, s.out_height(), s.out_width(), s.channels};
}

Pool::Pool(const LayerSpec& spec) : sizes_(PoolSizesOf(spec)), output_shape_(spec.output_shape) {}

PoolingShape Pool::ShapeOf(const LayerContext& ctx) const {
  PoolingShape s;
  s.samples = ctx.samples;
  s.height = sizes_.height;
  s.width = sizes_.width;
  s.channels = sizes_.channels;
  s.kernel_height = sizes_.kernel;
  s.kernel_width = sizes_.columns();
  s.stride_height = s.stride_width = sizes_.stride;
  s.pad_height = s.pad_width = sizes_.pad;
  return s;
}

Tensor Pool::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash*) {
  const PoolingShape shape = ShapeOf(ctx);
  Tensor y = ctx.backend->Allocate({ctx.samples * output_shape_[0], output_shape_[1]});
  if (sizes_.kind == PoolKind::kFirst) {
    ctx.backend->CopyColumns(x_MC.Reshape(InRows(ctx)), 0, y, 0, sizes_.channels);
    return y;
  }
  const Tensor image = x_MC.Reshape(InImage(shape)), pooled = y.Reshape(OutImage(shape));
  if (sizes_.kind == PoolKind::kMax) {
    ctx.backend->pooling().Max(shape, image, pooled);
  } else {
    ctx.backend->pooling().Average(shape, image, pooled);
  }
  return y;
}

Tensor Pool::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy, LayerStash*) {
  const PoolingShape shape = ShapeOf(ctx);
  Tensor dx_MC =
      ctx.backend->Allocate({ctx.samples * sizes_.height * sizes_.width, sizes_.channels});
  if (sizes_.kind == PoolKind::kFirst) {
    ctx.backend->Fill(dx_MC, 0);
    ctx.backend->CopyColumns(dy, 0, dx_MC.Reshape(InRows(ctx)), 0, sizes_.channels);
    return dx_MC;
  }
  const Tensor dimage = dx_MC.Reshape(InImage(shape)), dpooled = dy.Reshape(OutImage(shape));
  if (sizes_.kind == PoolKind::kMax) {
    ctx.backend->pooling().MaxGradient(shape, dpooled, x_MC.Reshape(InImage(shape)), dimage);
  } else {
    ctx.backend->pooling().AverageGradient(shape, dpooled, dimage);
  }
  return dx_MC;
}

}  // namespace

std::unique_ptr<Layer> MakePool(const LayerSpec& spec) { return std::make_unique<Pool>(spec); }

}  // namespace pipelab
