// Runs what patch_embedding_spec.h describes: y_MC = patches_MK w + b + positions. M = samples *
// tokens. With a class token a sample's patches are a product of their own, behind its first row.
#include <memory>
#include <utility>

#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/specs/patch_embedding_spec.h"

namespace pipelab {
namespace {

class PatchEmbedding : public UnaryLayer {
 public:
  explicit PatchEmbedding(const LayerSpec& spec);

 private:
  using P = PatchEmbeddingParameter;

  Tensor Run(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;
  // The image's patches as rows.
  Tensor Patches(const LayerContext& ctx) const;
  // Calls fn(patches, their rows of y) for all samples, or for each.
  template <typename Fn>
  void ForEachProduct(const LayerContext& ctx, const Tensor& y_MC, Fn&& fn) const;

  const PatchEmbeddingSizes sizes_;
};

PatchEmbedding::PatchEmbedding(const LayerSpec& spec) : sizes_(PatchEmbeddingSizesOf(spec)) {}

// A row of patches is `patch` rows of pixels: line r of the patch in column k moves from place
// (r, k) to (k, r).
Tensor PatchEmbedding::Patches(const LayerContext& ctx) const {
  const int64_t patch = sizes_.patch, columns = sizes_.width / patch,
                line = patch * sizes_.channels;
  const int64_t rows_of_patches = ctx.samples * (sizes_.height / patch);
  Tensor patches_MK = ctx.backend->Allocate({ctx.samples * sizes_.patches(), sizes_.patch_size()});
  const Shape rows = {rows_of_patches, columns * patch * line};
  const Tensor from = ctx.batch->fields[0].Reshape(rows), to = patches_MK.Reshape(rows);
  for (int64_t r = 0; r < patch; ++r) {
    for (int64_t k = 0; k < columns; ++k) {
      ctx.backend->CopyColumns(from, (r * columns + k) * line, to, (k * patch + r) * line, line);
    }
  }
  return patches_MK;
}

template <typename Fn>
void PatchEmbedding::ForEachProduct(const LayerContext& ctx, const Tensor& y_MC, Fn&& fn) const {
  const Tensor patches_MK = Patches(ctx);
  if (!sizes_.class_token) {
    fn(patches_MK, y_MC);
    return;
  }
  const int64_t count = sizes_.patches();
  for (int64_t s = 0; s < ctx.samples; ++s) {
    const int64_t first = s * sizes_.tokens() + 1;
    fn(patches_MK.Rows(s * count, (s + 1) * count), y_MC.Rows(first, first + count));
  }
}

Tensor PatchEmbedding::Run(const LayerContext& ctx, const Tensor&, LayerStash*) {
  Backend& b = *ctx.backend;
  const int64_t tokens = sizes_.tokens();
  Tensor y_MC = b.Allocate({ctx.samples * tokens, sizes_.hidden});
  ForEachProduct(ctx, y_MC, [&](const Tensor& patches, const Tensor& rows) {
    b.Linear(patches, parameters_[P::kW].value, parameters_[P::kB].value, rows);
  });
  for (int64_t s = 0; s < ctx.samples; ++s) {
    if (sizes_.class_token) {
      b.Copy(parameters_[P::kClass].value.Reshape({1, sizes_.hidden}),
             y_MC.Rows(s * tokens, s * tokens + 1));
    }
    const Tensor y_TC = y_MC.Rows(s * tokens, (s + 1) * tokens);
    b.Add(y_TC, parameters_[P::kPositions].value, y_TC);
  }
  return y_MC;
}

Tensor PatchEmbedding::InputGradient(const LayerContext&, const Tensor&, Tensor dy,
                                     LayerStash* stash) {
  stash->tensors = {std::move(dy)};
  return Tensor();
}

void PatchEmbedding::WeightGradient(const LayerContext& ctx, const Tensor&, LayerStash* stash) {
  Backend& b = *ctx.backend;
  const Tensor& dy_MC = stash->tensors[0];
  ForEachProduct(ctx, dy_MC, [&](const Tensor& patches, const Tensor& rows) {
    b.LinearWeightGradient(patches, rows, parameters_[P::kW].gradient, parameters_[P::kB].gradient);
  });
  const Tensor& dpositions_TC = parameters_[P::kPositions].gradient;
  for (int64_t s = 0; s < ctx.samples; ++s) {
    if (sizes_.class_token) {
      const Tensor dclass = parameters_[P::kClass].gradient.Reshape({1, sizes_.hidden});
      const int64_t first = s * sizes_.tokens();
      b.Add(dclass, dy_MC.Rows(first, first + 1), dclass);
    }
    b.Add(dpositions_TC, dy_MC.Rows(s * sizes_.tokens(), (s + 1) * sizes_.tokens()), dpositions_TC);
  }
  stash->tensors.clear();
}

}  // namespace

std::unique_ptr<Layer> MakePatchEmbedding(const LayerSpec& spec) {
  return std::make_unique<PatchEmbedding>(spec);
}

}  // namespace pipelab
