// Runs what gpt_head_spec.h describes. x_MC in, the loss out (LayerContext::loss_sum).
#ifndef PIPELAB_MODELS_LAYERS_GPT_HEAD_H_
#define PIPELAB_MODELS_LAYERS_GPT_HEAD_H_

#include <cstdint>

#include "models/layers/block_parts.h"
#include "models/layers/layer.h"

namespace pipelab {

class GptHead : public UnaryLayer {
 public:
  explicit GptHead(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  // norm_MC times the table, plus the bias, and the gradients of these.
  void Logits(const LayerContext& ctx, const Tensor& norm_MC, const Tensor& logits_MV) const;
  void LogitsInputGradient(const LayerContext& ctx, const Tensor& dlogits_MV,
                           const Tensor& dnorm_MC) const;
  void LogitsWeightGradient(const LayerContext& ctx, const Tensor& norm_MC,
                            const Tensor& dlogits_MV) const;

  // Devices that divide the words make the loss together; leaves the logarithm of each row's sum
  // of exponentials in `lse_M`.
  double LossWithPeers(const LayerContext& ctx, const Tensor& logits_MV, const Tensor& lse_M) const;
  bool divided() const { return !words_.whole(); }
  int64_t first_word() const { return words_.part * vocabulary_; }

  ProductRows rows_;
  int64_t vocabulary_;  // the device's words
  ParameterCut words_;  // which
  bool output_bias_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_GPT_HEAD_H_
