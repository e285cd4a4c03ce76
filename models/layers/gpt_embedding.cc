#include "models/layers/gpt_embedding.h"

#include <utility>

#include "models/layers/gpt_embedding_spec.h"

namespace pipelab {

using P = GptEmbeddingParameter;

GptEmbedding::GptEmbedding(const LayerSpec& spec)
    : tokens_(spec.output_shape[0]), hidden_(spec.output_shape[1]) {}

Tensor GptEmbedding::PositionsOf(const LayerContext& ctx, const Tensor& positions_TC) const {
  return positions_TC.Rows(ctx.slice.first, ctx.slice.first + ctx.slice.CountOf(tokens_));
}

Tensor GptEmbedding::Run(const LayerContext& ctx, const Tensor&, LayerStash*) {
  Tensor y_MC = ctx.backend->Allocate({ctx.samples * ctx.slice.CountOf(tokens_), hidden_});
  ctx.backend->embedding().Lookup(ctx.batch->fields[0], parameters_[P::kTable].value,
                                  PositionsOf(ctx, parameters_[P::kPositions].value), y_MC);
  return y_MC;
}

Tensor GptEmbedding::InputGradient(const LayerContext&, const Tensor&, Tensor dy,
                                   LayerStash* stash) {
  stash->tensors = {std::move(dy)};
  return Tensor();
}

void GptEmbedding::WeightGradient(const LayerContext& ctx, const Tensor&, LayerStash* stash) {
  ctx.backend->embedding().LookupWeightGradient(
      ctx.batch->fields[0], stash->tensors[0], parameters_[P::kTable].gradient,
      PositionsOf(ctx, parameters_[P::kPositions].gradient));
  stash->tensors.clear();
}

}  // namespace pipelab
