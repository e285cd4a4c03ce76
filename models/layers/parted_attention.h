// Attention of a device's queries to the keys and values of all devices that have parts of the same
// samples' tokens (models/graph/context_part.h): what gpt_attention and gpt_latent_attention have
// in common. models/specs/context_attention_spec.h says what it costs.
//
//   PartedAttention attention(spec.context, tokens, heads, /*padded=*/false);
//   Tensor keys = attention.Keys(ctx, own_MK);      // gathered, or the own ones; so for each pass
//   attention.Forward(ctx, q_MQ, std::move(keys), mix_MW, lse_SHT);
//   Tensor dkeys_MK =
//       attention.Gradient(ctx, dmix_MW, q_MQ, attention.Keys(ctx, own_MK), mix_MW, lse_SHT,
//                          dq_MQ);
//
// A device with all tokens makes one call of the kernel. Else rows M are the device's tokens of
// each sample, in order: two chunks of each where the mask is causal, else one. Each chunk, and
// round a ring each pair of a chunk of queries and one of keys, is a call of the kernel.
//
// By heads the device first gets rows N, all tokens of its part of the heads, and makes one call:
//
//   q_NQ = attention.ToHeads(ctx, std::move(q_MQ), {Q});     // q_MQ, where none are exchanged
//   mix_MW = attention.ToTokens(ctx, mix_NW, {W});
#ifndef PIPELAB_MODELS_LAYERS_PARTED_ATTENTION_H_
#define PIPELAB_MODELS_LAYERS_PARTED_ATTENTION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/graph/context_ring.h"
#include "models/layers/layer.h"

namespace pipelab {

class PartedAttention {
 public:
  // `heads`: what all calls have in common. `tokens`: the device's of a sample. `padded`: the first
  // data field says how many tokens of each sample are keys.
  PartedAttention(const ContextPart& part, int64_t tokens, const CrossAttentionShape& heads,
                  bool padded);

  const CrossAttentionShape& heads() const { return heads_; }
  bool parts() const { return !part_.whole(); }
  bool by_heads() const { return part_.by_heads(); }
  // Whether Keys brings those of other devices, or Forward does.
  bool takes_keys() const { return parts() && !by_heads(); }
  // In so many parts the device's heads go to all devices; and its part of the tokens is one of so
  // many of those that it attends to: 1, but where heads are exchanged.
  int64_t head_parts() const { return by_heads() ? part_.parts : 1; }
  // The shape of the log-sum-exps: a number for each query and head, chunk by chunk.
  Shape SumsShape(const LayerContext& ctx) const;
  // Turns the rows' heads, or a slice's, or back; tokens and samples are filled in.
  void Rotate(const LayerContext& ctx, RotaryShape shape, bool back, const Tensor& x) const;

  // From the device's tokens of all its heads to all tokens of its part of them, and back. Rows
  // have so many numbers of q, of k and of v of all heads, side by side.
  Tensor ToHeads(const LayerContext& ctx, Tensor own_MX, absl::Span<const int64_t> columns) const;
  Tensor ToTokens(const LayerContext& ctx, Tensor heads_NX,
                  absl::Span<const int64_t> columns) const;

  // What Forward and Gradient begin with, of the own keys and values.
  Tensor Keys(const LayerContext& ctx, Tensor own_MK) const;
  void Forward(const LayerContext& ctx, const Tensor& q_MQ, Tensor keys, const Tensor& mix_MW,
               const Tensor& lse) const;
  // Writes the gradient of q and returns that of the own keys and values.
  Tensor Gradient(const LayerContext& ctx, const Tensor& dmix_MW, const Tensor& q_MQ, Tensor keys,
                  const Tensor& mix_MW, const Tensor& lse, const Tensor& dq_MQ) const;

 private:
  enum class Copying { kIn, kOut };
  class Ring;

  int64_t chunk() const { return tokens_ / part_.chunks(); }
  bool ring() const { return part_.exchange == ContextExchange::kRing; }
  // Calls fn(sample, place of its chunk, the chunk's tokens) for the device's chunks; of a sample
  // the last tokens first.
  template <typename Fn>
  void ForEachChunk(const LayerContext& ctx, Fn&& fn) const;
  // With the keys of the device `shift` places back: calls fn(shape, place of the chunk of queries,
  // place of that of keys) for the pairs of which the first queries see something.
  template <typename Fn>
  void ForEachPair(const LayerContext& ctx, int64_t shift, Fn&& fn) const;
  CrossAttentionShape ShapeOfWhole(const LayerContext& ctx) const;
  CrossAttentionShape ShapeWithAll(const LayerContext& ctx, int64_t sample,
                                   const TokenSlice& chunk) const;
  // Between own rows and what each device has of their heads, device after device.
  void CopyHeads(const LayerContext& ctx, Copying way, const Tensor& parts_NX, const Tensor& own_MX,
                 absl::Span<const int64_t> columns) const;
  // An equal part for each device, and from each.
  Tensor Exchange(const LayerContext& ctx, const Tensor& parts_NX) const;
  // Between k and v of all tokens as the devices have them, part after part, and in their order.
  void CopyParts(const LayerContext& ctx, Copying way, const Tensor& parts_NK,
                 const Tensor& keys_NK) const;

  void ForwardRing(const LayerContext& ctx, const Tensor& q_MQ, Tensor own_MK, const Tensor& mix_MW,
                   const Tensor& lse) const;
  Tensor GradientRing(const LayerContext& ctx, const Tensor& dmix_MW, const Tensor& q_MQ,
                      Tensor own_MK, const Tensor& mix_MW, const Tensor& lse,
                      const Tensor& dq_MQ) const;

  const ContextPart part_;
  const int64_t tokens_;
  const CrossAttentionShape heads_;
  const bool padded_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_PARTED_ATTENTION_H_
