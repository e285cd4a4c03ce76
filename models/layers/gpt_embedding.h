// Runs what gpt_embedding_spec.h describes: y_MC = table[token] + positions. M = samples * tokens.
// Devices that divide the words each look up those that they have, one adds the positions, and the
// group sums: the same bits as on one device, since all but two terms are zeros.
#ifndef PIPELAB_MODELS_LAYERS_GPT_EMBEDDING_H_
#define PIPELAB_MODELS_LAYERS_GPT_EMBEDDING_H_

#include <cstdint>

#include "models/layers/block_parts.h"
#include "models/layers/gpt_embedding_spec.h"
#include "models/layers/layer.h"

namespace pipelab {

class GptEmbedding : public UnaryLayer {
 public:
  explicit GptEmbedding(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x, LayerStash* stash) override;
  // The rows of the pass's tokens.
  Tensor PositionsOf(const LayerContext& ctx, const Tensor& positions_TC) const;
  // The same of the sines and cosines, in a new tensor.
  Tensor Sinusoids(const LayerContext& ctx) const;

  bool divided() const { return !words_.whole(); }
  int64_t first_word() const { return words_.part * num_words_; }

  // The first of a sample's tokens that the device has, and how many.
  int64_t FirstToken(const LayerContext& ctx) const {
    return ctx.slice.first + rows_.part().part * tokens_;
  }
  // Adds the positions of each sample's tokens to y, or y to them.
  void AddPositions(const LayerContext& ctx, const Tensor& positions_TC, const Tensor& y_MC) const;
  void AddToPositions(const LayerContext& ctx, const Tensor& y_MC,
                      const Tensor& positions_TC) const;

  ProductRows rows_;
  int64_t tokens_, hidden_;
  int64_t num_words_;   // in the device's table
  ParameterCut words_;  // which
  Positions positions_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_GPT_EMBEDDING_H_
