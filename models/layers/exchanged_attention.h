// Causal attention of a slice whose pass gives chunks of keys and values to other devices, or
// computes those of others (chunk_exchange.h): what gpt_attention does in place of one call of the
// kernel. models/specs/slice_attention_spec.h says what it costs.
//
//   ExchangedAttention attention(ctx, heads, tokens);      // heads.q_row: a row of q, k and v
//   attention.Forward(qkv_NQ, mix_MW, lse_SHT);
//   attention.Gradient(std::move(dmix_MW), qkv_NQ, mix_MW, std::move(lse_SHT), dqkv_NQ);
//
// N: tokens of whole samples; M: of the slice, which must be one of equal ones. A giver sends its
// queries with the keys and values, attends to the rest, and merges what comes back by the
// log-sum-exps. Sums are in another order than in one call: results differ by rounding.
#ifndef PIPELAB_MODELS_LAYERS_EXCHANGED_ATTENTION_H_
#define PIPELAB_MODELS_LAYERS_EXCHANGED_ATTENTION_H_

#include <cstdint>

#include "kernels/attention_kernels.h"
#include "kernels/backend.h"
#include "kernels/tensor/tensor.h"
#include "models/layers/chunk_exchange.h"
#include "models/layers/layer.h"

namespace pipelab {

class ExchangedAttention {
 public:
  // `ctx`, with an exchange, must outlive it. `tokens`: of a whole sample. Of `heads`, what all
  // calls have in common; no window.
  ExchangedAttention(const LayerContext& ctx, const CrossAttentionShape& heads, int64_t tokens);

  void Forward(const Tensor& qkv_NQ, const Tensor& mix_MW, const Tensor& lse_SHT) const;
  // As AttentionKernels::Gradient of the slice does, gradients of k and v add up over the slices.
  void Gradient(Tensor dmix_MW, const Tensor& qkv_NQ, const Tensor& mix_MW, Tensor lse_SHT,
                const Tensor& dqkv_NQ) const;

 private:
  using Share = ChunkExchange::Share;

  Backend& backend() const { return *ctx_.backend; }
  int64_t query_width() const { return heads_.width(); }
  int64_t key_width() const { return 2 * heads_.kv_width(); }
  Shape QueryShape() const { return {ctx_.samples * count_, query_width()}; }
  Shape KeyShape(const Share& share) const {
    return {ctx_.samples * share.count * count_, key_width()};
  }
  // A sample's rows in tensors of the slice, of the tokens that are kept, of the slice and of a
  // share in tensors of whole samples.
  Tensor OfSlice(const Tensor& x_M, int64_t sample) const;
  Tensor Kept(const Tensor& x_N, int64_t sample) const;
  Tensor SliceIn(const Tensor& x_N, int64_t sample) const;
  Tensor ShareIn(const Tensor& x_N, const Share& share, int64_t sample) const;

  AttentionShape OwnShape() const;
  CrossAttentionShape ShapeOf(const Share& share) const;
  Tensor Queries(const Tensor& qkv_NQ) const;
  Tensor Keys(const Tensor& qkv_NQ, const Share& share) const;
  Tensor CopyOf(const Tensor& x) const;
  std::function<Tensor()> Receive(DataType type, const Shape& shape, int peer) const;
  // Adds to so many of the rows' columns.
  void AddColumns(const Tensor& part, const Tensor& rows, int64_t column) const;
  void OwnGradient(const Tensor& dmix_MW, const Tensor& qkv_NQ, const Tensor& mix_MW,
                   const Tensor& lse_SHT, const Tensor& dqkv_NQ) const;
  void GiveGradient(Tensor dmix_MW, const Tensor& qkv_NQ, const Tensor& mix_MW, Tensor lse_SHT,
                    const Tensor& dqkv_NQ) const;
  void HelpGradient(Tensor dmix_MW, const Tensor& qkv_NQ, const Tensor& mix_MW, Tensor lse_SHT,
                    const Tensor& dqkv_NQ) const;

  const LayerContext& ctx_;
  const CrossAttentionShape heads_;
  const int64_t tokens_, count_;
  int64_t begin_ = 0;  // the first token whose keys are kept
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_EXCHANGED_ATTENTION_H_
