#include "models/layers/parted_attention.h"

#include <utility>
#include <vector>

#include "models/layers/block_parts.h"
#include "models/layers/tensor_peers.h"

namespace pipelab {

// The heads of one call.
static CrossAttentionShape OwnHeads(const ContextPart& part, CrossAttentionShape heads) {
  if (!part.by_heads()) return heads;
  heads.heads /= part.parts;
  heads.kv_heads /= part.parts;
  return heads;
}

PartedAttention::PartedAttention(const ContextPart& part, int64_t tokens,
                                 const CrossAttentionShape& heads, bool padded)
    : part_(part), tokens_(tokens), heads_(OwnHeads(part, heads)), padded_(padded) {}

template <typename Fn>
void PartedAttention::ForEachChunk(const LayerContext& ctx, Fn&& fn) const {
  const std::vector<TokenSlice> chunks = part_.Tokens(tokens_ * part_.parts);
  const auto count = static_cast<int64_t>(chunks.size());
  for (int64_t sample = 0; sample < ctx.samples; ++sample) {
    for (int64_t i = count - 1; i >= 0; --i) fn(sample, sample * count + i, chunks[i]);
  }
}

Shape PartedAttention::SumsShape(const LayerContext& ctx) const {
  if (by_heads()) return {ctx.samples, heads_.heads, tokens_ * part_.parts};
  return {ctx.samples * part_.chunks(), heads_.heads, ctx.slice.CountOf(tokens_) / part_.chunks()};
}

void PartedAttention::Rotate(const LayerContext& ctx, RotaryShape shape, bool back,
                             const Tensor& x) const {
  shape.samples = ctx.samples;
  shape.tokens = ctx.slice.CountOf(tokens_);
  shape.first_token = ctx.slice.first;
  if (!parts()) {
    ctx.backend->attention().Rotate(shape, back, x);
    return;
  }
  shape.samples = 1;
  ForEachChunk(ctx, [&](int64_t, int64_t place, const TokenSlice& chunk) {
    shape.tokens = chunk.count;
    shape.first_token = chunk.first;
    ctx.backend->attention().Rotate(shape, back,
                                    x.Rows(place * chunk.count, (place + 1) * chunk.count));
  });
}

CrossAttentionShape PartedAttention::ShapeOfWhole(const LayerContext& ctx) const {
  CrossAttentionShape shape = heads_;
  shape.samples = ctx.samples;
  shape.queries = shape.keys = tokens_ * head_parts();
  if (padded_) shape.key_lengths = ctx.batch->HostIdsOf(0);
  return shape;
}

CrossAttentionShape PartedAttention::ShapeWithAll(const LayerContext& ctx, int64_t sample,
                                                  const TokenSlice& chunk) const {
  CrossAttentionShape shape = heads_;
  shape.samples = 1;
  shape.queries = chunk.count;
  shape.keys = tokens_ * part_.parts;
  shape.first_query = shape.causal ? chunk.first : 0;
  if (padded_) shape.key_lengths = ctx.batch->HostIdsOf(0).subspan(sample, 1);
  return shape;
}

void PartedAttention::CopyParts(const LayerContext& ctx, Copying way, const Tensor& parts_NK,
                                const Tensor& keys_NK) const {
  const int64_t tokens = tokens_ * part_.parts;
  ContextPart from = part_;
  int64_t row = 0;
  for (from.part = 0; from.part < from.parts; ++from.part) {
    const std::vector<TokenSlice> chunks = from.Tokens(tokens);
    for (int64_t sample = 0; sample < ctx.samples; ++sample) {
      for (const TokenSlice& chunk : chunks) {
        const Tensor rows = parts_NK.Rows(row, row + chunk.count);
        const int64_t first = sample * tokens + chunk.first;
        const Tensor at = keys_NK.Rows(first, first + chunk.count);
        ctx.backend->Copy(way == Copying::kIn ? rows : at, way == Copying::kIn ? at : rows);
        row += chunk.count;
      }
    }
  }
}

Tensor PartedAttention::Keys(const LayerContext& ctx, Tensor own_MK) const {
  if (!takes_keys() || ring()) return own_MK;
  Backend& b = *ctx.backend;
  const Shape all = {own_MK.dim(0) * part_.parts, own_MK.dim(1)};
  const Tensor parts_NK = b.Allocate(all);
  ctx.context->GatherRows(own_MK, parts_NK, /*samples=*/1);
  own_MK = Tensor();
  Tensor keys_NK = b.Allocate(all);
  CopyParts(ctx, Copying::kIn, parts_NK, keys_NK);
  return keys_NK;
}

void PartedAttention::Forward(const LayerContext& ctx, const Tensor& q_MQ, Tensor keys,
                              const Tensor& mix_MW, const Tensor& lse) const {
  if (!takes_keys()) {
    ctx.backend->attention().CrossForward(ShapeOfWhole(ctx), q_MQ, keys, mix_MW, lse);
    return;
  }
  if (ring()) {
    ForwardRing(ctx, q_MQ, std::move(keys), mix_MW, lse);
    return;
  }
  const int64_t all = tokens_ * part_.parts;
  ForEachChunk(ctx, [&](int64_t sample, int64_t place, const TokenSlice& chunk) {
    const int64_t begin = place * chunk.count, end = begin + chunk.count;
    ctx.backend->attention().CrossForward(ShapeWithAll(ctx, sample, chunk), q_MQ.Rows(begin, end),
                                          keys.Rows(sample * all, (sample + 1) * all),
                                          mix_MW.Rows(begin, end), lse.Rows(place, place + 1));
  });
}

Tensor PartedAttention::Gradient(const LayerContext& ctx, const Tensor& dmix_MW, const Tensor& q_MQ,
                                 Tensor keys, const Tensor& mix_MW, const Tensor& lse,
                                 const Tensor& dq_MQ) const {
  if (parts() && ring()) {
    return GradientRing(ctx, dmix_MW, q_MQ, std::move(keys), mix_MW, lse, dq_MQ);
  }
  Tensor dkeys_NK = AllocateLike(ctx, keys);
  if (!takes_keys()) {
    ctx.backend->attention().CrossGradient(ShapeOfWhole(ctx), dmix_MW, q_MQ, keys, mix_MW, lse,
                                           dq_MQ, dkeys_NK);
    return dkeys_NK;
  }
  const int64_t all = tokens_ * part_.parts;
  int64_t begun = -1;  // the sample whose keys have a gradient
  ForEachChunk(ctx, [&](int64_t sample, int64_t place, const TokenSlice& chunk) {
    const int64_t begin = place * chunk.count, end = begin + chunk.count;
    const int64_t first = sample * all, last = first + all;
    CrossAttentionShape shape = ShapeWithAll(ctx, sample, chunk);
    shape.adds_keys = std::exchange(begun, sample) == sample;
    ctx.backend->attention().CrossGradient(shape, dmix_MW.Rows(begin, end), q_MQ.Rows(begin, end),
                                           keys.Rows(first, last), mix_MW.Rows(begin, end),
                                           lse.Rows(place, place + 1), dq_MQ.Rows(begin, end),
                                           dkeys_NK.Rows(first, last));
  });
  keys = Tensor();
  const Tensor parts_NK = AllocateLike(ctx, dkeys_NK);
  CopyParts(ctx, Copying::kOut, parts_NK, dkeys_NK);
  dkeys_NK = Tensor();
  Tensor own_MK = ctx.backend->Allocate({q_MQ.dim(0), parts_NK.dim(1)});
  ctx.context->ScatterSums(parts_NK, own_MK, /*samples=*/1);
  return own_MK;
}

}  // namespace pipelab
