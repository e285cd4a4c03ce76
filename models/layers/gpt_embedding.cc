#include "models/layers/gpt_embedding.h"

#include <cmath>
#include <utility>

#include "models/layers/tensor_peers.h"

namespace pipelab {

using P = GptEmbeddingParameter;

GptEmbedding::GptEmbedding(const LayerSpec& spec)
    : rows_(spec),
      tokens_(spec.output_shape[0]),
      hidden_(spec.output_shape[1]),
      num_words_(spec.parameters[P::kTable].shape[0]),
      words_(spec.parameters[P::kTable].cut),
      positions_(static_cast<Positions>(static_cast<int>(Attribute(spec, "positions")))) {}

Tensor GptEmbedding::PositionsOf(const LayerContext& ctx, const Tensor& positions_TC) const {
  return positions_TC.Rows(FirstToken(ctx), FirstToken(ctx) + ctx.slice.CountOf(tokens_));
}

// Column 2i of position p is sin(p / 10000^(2i / C)), column 2i + 1 the cosine.
Tensor GptEmbedding::Sinusoids(const LayerContext& ctx) const {
  const int64_t count = ctx.slice.CountOf(tokens_);
  Tensor positions_TC = ctx.backend->Allocate({count, hidden_});
  FillOnHost<float>(positions_TC, [&](absl::Span<float> out) {
    for (int64_t column = 0; column < hidden_; ++column) {
      const double exponent = static_cast<double>(column / 2 * 2) / static_cast<double>(hidden_);
      const double frequency = std::pow(10000.0, -exponent);
      for (int64_t row = 0; row < count; ++row) {
        const double angle = static_cast<double>(FirstToken(ctx) + row) * frequency;
        out[row * hidden_ + column] =
            static_cast<float>(column % 2 == 0 ? std::sin(angle) : std::cos(angle));
      }
    }
  });
  return positions_TC;
}

void GptEmbedding::AddPositions(const LayerContext& ctx, const Tensor& positions_TC,
                                const Tensor& y_MC) const {
  for (int64_t row = 0; row < y_MC.dim(0); row += tokens_) {
    const Tensor sample = y_MC.Rows(row, row + tokens_);
    ctx.backend->Add(sample, positions_TC, sample);
  }
}

void GptEmbedding::AddToPositions(const LayerContext& ctx, const Tensor& y_MC,
                                  const Tensor& positions_TC) const {
  for (int64_t row = 0; row < y_MC.dim(0); row += tokens_) {
    ctx.backend->Add(positions_TC, y_MC.Rows(row, row + tokens_), positions_TC);
  }
}

Tensor GptEmbedding::Run(const LayerContext& ctx, const Tensor&, LayerStash*) {
  const int64_t m = rows_.all(ctx.samples * ctx.slice.CountOf(tokens_));
  Tensor y_MC = ctx.backend->Allocate({m, hidden_});
  const Tensor positions = positions_ == Positions::kLearned
                               ? PositionsOf(ctx, parameters_[P::kPositions].value)
                               : Sinusoids(ctx);
  EmbeddingKernels& embedding = ctx.backend->embedding();
  const Tensor &tokens = ctx.batch->fields[0], &table = parameters_[P::kTable].value;
  if (rows_.part().parts > 1) {
    embedding.LookupPart(tokens, first_word(), table, Tensor(), y_MC);
    y_MC = rows_.Sum(ctx, std::move(y_MC));
    AddPositions(ctx, positions, y_MC);
  } else if (divided()) {
    embedding.LookupPart(tokens, first_word(), table, AddsToSum(ctx) ? positions : Tensor(), y_MC);
    SumOverPeers(ctx, y_MC);
  } else {
    embedding.Lookup(tokens, table, positions, y_MC);
  }
  return y_MC;
}

Tensor GptEmbedding::InputGradient(const LayerContext&, const Tensor&, Tensor dy,
                                   LayerStash* stash) {
  stash->tensors = {std::move(dy)};
  return Tensor();
}

void GptEmbedding::WeightGradient(const LayerContext& ctx, const Tensor&, LayerStash* stash) {
  EmbeddingKernels& embedding = ctx.backend->embedding();
  const Tensor &tokens = ctx.batch->fields[0], &table = parameters_[P::kTable].gradient;
  const bool learned = positions_ == Positions::kLearned;
  if (rows_.part().parts > 1) {
    embedding.LookupPartWeightGradient(tokens, first_word(), rows_.Gather(ctx, stash->tensors[0]),
                                       table, Tensor());
    if (learned) {
      AddToPositions(ctx, stash->tensors[0], PositionsOf(ctx, parameters_[P::kPositions].gradient));
    }
  } else if (divided()) {
    embedding.LookupPartWeightGradient(
        tokens, first_word(), stash->tensors[0], table,
        learned ? PositionsOf(ctx, parameters_[P::kPositions].gradient) : Tensor());
  } else if (learned) {
    embedding.LookupWeightGradient(tokens, stash->tensors[0], table,
                                   PositionsOf(ctx, parameters_[P::kPositions].gradient));
  } else {  // each token a bag of one
    embedding.BagWeightGradient(tokens, stash->tensors[0], BagMode::kSum, table);
  }
  stash->tensors.clear();
}

}  // namespace pipelab
