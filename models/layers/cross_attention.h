// Runs what cross_attention_spec.h describes. x_MC, memory_NC, y_MC; M = samples * tokens,
// N = samples * memory tokens.
#ifndef PIPELAB_MODELS_LAYERS_CROSS_ATTENTION_H_
#define PIPELAB_MODELS_LAYERS_CROSS_ATTENTION_H_

#include <cstdint>
#include <vector>

#include "models/layers/block_parts.h"
#include "models/layers/layer.h"

namespace pipelab {

class CrossAttention : public Layer {
 public:
  explicit CrossAttention(const LayerSpec& spec);

  Tensor Forward(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                 LayerStash* stash) override;
  std::vector<Tensor> BackwardInput(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                                    Tensor dy, LayerStash* stash) override;
  void BackwardWeight(const LayerContext& ctx, absl::Span<const Tensor> inputs,
                      LayerStash* stash) override;

 private:
  CrossAttentionShape ShapeFor(const LayerContext& ctx) const;

  ProductRows rows_;
  int64_t tokens_, memory_tokens_, heads_, head_size_, width_;  // width: of all heads
  bool has_key_lengths_;
  ResidualDropout residual_;
  int64_t hidden_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_CROSS_ATTENTION_H_
