// Runs what gpt_embedding_spec.h describes: y_MC = table[token] + positions. M = samples * tokens.
// Devices that divide the words each look up those that they have, one adds the positions, and the
// group sums: the same bits as on one device, since all but two terms are zeros.
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "models/layers/block_parts.h"
#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/layers/tensor_peers.h"
#include "models/specs/gpt_embedding_spec.h"

namespace pipelab {
namespace {

class GptEmbedding : public UnaryLayer {
 public:
  explicit GptEmbedding(const LayerSpec& spec);

 private:
  using P = GptEmbeddingParameter;

  Tensor Run(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;
  // The rows of the pass's tokens, of positions that are together.
  static Tensor PositionsOf(const TokenSlice& tokens, const Tensor& positions_TC) {
    return positions_TC.Rows(tokens.first, tokens.end());
  }
  // The same of the sines and cosines of all the pass's tokens, in a new tensor.
  Tensor Sinusoids(const LayerContext& ctx) const;

  bool divided() const { return !words_.whole(); }
  int64_t first_word() const { return words_.part * num_words_; }

  // The tokens of a sample that the device has in the pass.
  std::vector<TokenSlice> TokensOfPass(const LayerContext& ctx) const {
    if (ctx.cached != nullptr) {
      std::vector<TokenSlice> tokens;
      for (const TokenRun& run : ctx.cached->runs) tokens.push_back({run.first, run.count});
      return tokens;
    }
    const int64_t own = Count(ctx);
    return context_.Tokens(all_tokens_, {ctx.slice.first + rows_.part().part * own, own});
  }
  bool together(const LayerContext& ctx) const {
    return rows_.part().parts == 1 && context_.whole() && ctx.cached == nullptr;
  }
  // Rows of the pass on this device, of one sample or of all runs.
  int64_t Count(const LayerContext& ctx) const {
    return ctx.cached != nullptr ? RowsOf(ctx.cached->runs)
                                 : ctx.slice.CountOf(tokens_, rows_.part().parts);
  }
  // Adds the positions of each sample's tokens to y, or y to them. Sinusoids are those of y's rows.
  void AddPositions(const LayerContext& ctx, const Tensor& positions_TC, const Tensor& y_MC) const;
  void AddToPositions(const LayerContext& ctx, const Tensor& y_MC,
                      const Tensor& positions_TC) const;
  // Calls fn(rows of y, rows of the positions).
  template <typename Fn>
  void ForEachPositions(const LayerContext& ctx, const Tensor& y_MC, const Tensor& positions_TC,
                        Fn&& fn) const;

  ProductRows rows_;
  ContextPart context_;
  int64_t all_tokens_;  // of a sample, on all devices
  int64_t tokens_, hidden_;
  int64_t num_words_;   // in the device's table
  ParameterCut words_;  // which
  Positions positions_;
  bool has_types_;
};

GptEmbedding::GptEmbedding(const LayerSpec& spec)
    : rows_(spec),
      context_(spec.context),
      all_tokens_(TokensOf(spec)),
      tokens_(spec.output_shape[0]),
      hidden_(spec.output_shape[1]),
      num_words_(spec.parameters[P::kTable].shape[0]),
      words_(spec.parameters[P::kTable].cut),
      positions_(static_cast<Positions>(static_cast<int>(Attribute(spec, "positions")))),
      has_types_(spec.parameters.size() > P::kTypes) {}

// Column 2i of position p is sin(p / 10000^(2i / C)), column 2i + 1 the cosine.
Tensor GptEmbedding::Sinusoids(const LayerContext& ctx) const {
  const int64_t count = Count(ctx);
  Tensor positions_TC = ctx.backend->Allocate({count, hidden_});
  FillOnHost<float>(positions_TC, [&](absl::Span<float> out) {
    for (int64_t column = 0; column < hidden_; ++column) {
      const double exponent =
          static_cast<double>(column - column % 2) / static_cast<double>(hidden_);
      const double frequency = std::pow(10000.0, -exponent);
      int64_t row = 0;
      for (const TokenSlice& tokens : TokensOfPass(ctx)) {
        for (int64_t token = tokens.first; token < tokens.end(); ++token, ++row) {
          const double angle = static_cast<double>(token) * frequency;
          out[row * hidden_ + column] =
              static_cast<float>(column % 2 == 0 ? std::sin(angle) : std::cos(angle));
        }
      }
    }
  });
  return positions_TC;
}

template <typename Fn>
void GptEmbedding::ForEachPositions(const LayerContext& ctx, const Tensor& y_MC,
                                    const Tensor& positions_TC, Fn&& fn) const {
  std::vector<TokenSlice> slices = {{0, positions_TC.dim(0)}};
  if (positions_ == Positions::kLearned) slices = TokensOfPass(ctx);
  for (int64_t row = 0; row < y_MC.dim(0);) {
    for (const TokenSlice& tokens : slices) {
      fn(y_MC.Rows(row, row + tokens.count), PositionsOf(tokens, positions_TC));
      row += tokens.count;
    }
  }
}

void GptEmbedding::AddPositions(const LayerContext& ctx, const Tensor& positions_TC,
                                const Tensor& y_MC) const {
  ForEachPositions(ctx, y_MC, positions_TC, [&](const Tensor& rows, const Tensor& positions) {
    ctx.backend->Add(rows, positions, rows);
  });
}

void GptEmbedding::AddToPositions(const LayerContext& ctx, const Tensor& y_MC,
                                  const Tensor& positions_TC) const {
  ForEachPositions(ctx, y_MC, positions_TC, [&](const Tensor& rows, const Tensor& positions) {
    ctx.backend->Add(positions, rows, positions);
  });
}

Tensor GptEmbedding::Run(const LayerContext& ctx, const Tensor&, LayerStash*) {
  const int64_t m = rows_.all((ctx.cached != nullptr ? 1 : ctx.samples) * Count(ctx));
  Tensor y_MC = ctx.backend->Allocate({m, hidden_});
  Tensor positions;  // of all tokens, or of the pass's where these are together
  if (positions_ == Positions::kLearned) {
    positions = parameters_[P::kPositions].value;
    if (together(ctx)) positions = PositionsOf(TokensOfPass(ctx)[0], positions);
  } else if (positions_ == Positions::kSinusoidal) {
    positions = Sinusoids(ctx);
  }
  EmbeddingKernels& embedding = ctx.backend->embedding();
  const Tensor &tokens = ctx.batch->fields[0], &table = parameters_[P::kTable].value;
  if (!together(ctx)) {
    embedding.LookupPart(tokens, first_word(), table, Tensor(), y_MC);
    if (divided()) y_MC = rows_.Sum(ctx, std::move(y_MC));
    if (!positions.empty()) AddPositions(ctx, positions, y_MC);
  } else if (divided() || positions.empty()) {
    embedding.LookupPart(tokens, first_word(), table, AddsToSum(ctx) ? positions : Tensor(), y_MC);
    if (divided()) SumOverPeers(ctx, y_MC);
  } else {
    embedding.Lookup(tokens, table, positions, y_MC);
  }
  if (has_types_) {
    AddToRows(ctx, parameters_[P::kTypes].value.Rows(0, 1).Reshape({hidden_}), y_MC);
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
  Tensor positions;
  if (positions_ == Positions::kLearned) {
    positions = parameters_[P::kPositions].gradient;
    if (together(ctx)) positions = PositionsOf(TokensOfPass(ctx)[0], positions);
  }
  if (!together(ctx)) {
    embedding.LookupPartWeightGradient(tokens, first_word(), rows_.Gather(ctx, stash->tensors[0]),
                                       table, Tensor());
    if (!positions.empty()) AddToPositions(ctx, stash->tensors[0], positions);
  } else if (divided()) {
    embedding.LookupPartWeightGradient(tokens, first_word(), stash->tensors[0], table, positions);
  } else if (!positions.empty()) {
    embedding.LookupWeightGradient(tokens, stash->tensors[0], table, positions);
  } else {  // each token a bag of one
    embedding.BagWeightGradient(tokens, stash->tensors[0], BagMode::kSum, table);
  }
  if (has_types_) {
    AddRowsTo(ctx, stash->tensors[0],
              parameters_[P::kTypes].gradient.Rows(0, 1).Reshape({hidden_}));
  }
  stash->tensors.clear();
}

}  // namespace

std::unique_ptr<Layer> MakeGptEmbedding(const LayerSpec& spec) {
  return std::make_unique<GptEmbedding>(spec);
}

}  // namespace pipelab
