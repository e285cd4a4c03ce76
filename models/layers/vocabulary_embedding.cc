// Runs an embedding's part as vocabulary_parts.h describes it: y_MC = table[token] (+ positions),
// where the token is the part's. M = samples * tokens.
#include <memory>
#include <utility>

#include "models/layers/layer.h"
#include "models/layers/vocabulary_layers.h"
#include "models/specs/vocabulary_parts.h"

namespace pipelab {
namespace {

class VocabularyEmbedding : public UnaryLayer {
 public:
  explicit VocabularyEmbedding(const LayerSpec& spec)
      : first_(WholeAttribute(spec, "first")),
        tokens_(spec.output_shape[0]),
        hidden_(spec.output_shape[1]),
        has_positions_(spec.parameters.size() > 1) {}

 private:
  Tensor Run(const LayerContext& ctx, const Tensor&, LayerStash*) override {
    Tensor y_MC = ctx.backend->Allocate({ctx.samples * tokens_, hidden_});
    ctx.backend->embedding().LookupPart(ctx.batch->fields[0], first_, parameters_[0].value,
                                        has_positions_ ? parameters_[1].value : Tensor(), y_MC);
    return y_MC;
  }
  Tensor InputGradient(const LayerContext&, const Tensor&, Tensor dy, LayerStash* stash) override {
    stash->tensors = {std::move(dy)};
    return Tensor();
  }
  void WeightGradient(const LayerContext& ctx, const Tensor&, LayerStash* stash) override {
    ctx.backend->embedding().LookupPartWeightGradient(
        ctx.batch->fields[0], first_, stash->tensors[0], parameters_[0].gradient,
        has_positions_ ? parameters_[1].gradient : Tensor());
    stash->tensors.clear();
  }

  int64_t first_, tokens_, hidden_;
  bool has_positions_;
};

}  // namespace

std::unique_ptr<Layer> MakeVocabularyEmbedding(const LayerSpec& spec) {
  return std::make_unique<VocabularyEmbedding>(spec);
}

}  // namespace pipelab
