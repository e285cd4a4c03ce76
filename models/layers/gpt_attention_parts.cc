// Slices of the tokens, and devices with parts of them.
#include <cstdint>
#include <utility>
#include <vector>

#include "models/layers/gpt_attention.h"
#include "models/layers/tensor_peers.h"

namespace pipelab {

void GptAttention::CopySlice(const LayerContext& ctx, Copying way, const Tensor& slice_MC,
                             const Tensor& sequence_MC) const {
  const int64_t count = ctx.slice.count;
  for (int64_t s = 0; s < ctx.samples; ++s) {
    const int64_t place = s * tokens_ + ctx.slice.first;
    const Tensor rows = slice_MC.Rows(s * count, (s + 1) * count),
                 at = sequence_MC.Rows(place, place + count);
    if (way == Copying::kIn) {
      ctx.backend->Copy(rows, at);
    } else {
      ctx.backend->Copy(at, rows);
    }
  }
}

CrossAttentionShape GptAttention::ChunkShape(const LayerContext& ctx, int64_t sample,
                                             const TokenSlice& chunk) const {
  CrossAttentionShape shape;
  shape.samples = 1;
  shape.queries = chunk.count;
  shape.keys = tokens_ * context_.parts;
  shape.heads = heads_;
  shape.kv_heads = kv_heads_;
  shape.head_size = head_size_;
  shape.causal = causal_;
  shape.first_query = causal_ ? chunk.first : 0;
  shape.window = window_;
  shape.q_row = qkv_width_;
  if (has_key_lengths_) shape.key_lengths = ctx.batch->HostIdsOf(0).subspan(sample, 1);
  return shape;
}

void GptAttention::CopyParts(const LayerContext& ctx, Copying way, const Tensor& parts_NK,
                             const Tensor& keys_NK) const {
  const int64_t tokens = tokens_ * context_.parts;
  ContextPart from = context_;
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

Tensor GptAttention::GatherKeys(const LayerContext& ctx, const Tensor& qkv_MQ) const {
  Backend& b = *ctx.backend;
  const int64_t m = qkv_MQ.dim(0), k = qkv_width_ - width_, all = m * context_.parts;
  Tensor parts_NK = b.Allocate({all, k});
  {
    const Tensor own_MK = b.Allocate({m, k});
    b.CopyColumns(qkv_MQ, width_, own_MK, 0, k);
    ctx.context->GatherRows(own_MK, parts_NK, /*samples=*/1);
  }
  Tensor keys_NK = b.Allocate({all, k});
  CopyParts(ctx, Copying::kIn, parts_NK, keys_NK);
  return keys_NK;
}

void GptAttention::ScatterKeys(const LayerContext& ctx, Tensor dkeys_NK,
                               const Tensor& dqkv_MQ) const {
  Backend& b = *ctx.backend;
  const Tensor parts_NK = AllocateLike(ctx, dkeys_NK);
  CopyParts(ctx, Copying::kOut, parts_NK, dkeys_NK);
  dkeys_NK = Tensor();
  const int64_t m = dqkv_MQ.dim(0), k = parts_NK.dim(1);
  const Tensor own_MK = b.Allocate({m, k});
  ctx.context->ScatterSums(parts_NK, own_MK, /*samples=*/1);
  b.CopyColumns(own_MK, 0, dqkv_MQ, width_, k);
}

void GptAttention::AttendToAll(const LayerContext& ctx, const Tensor& qkv_MQ, const Tensor& keys_NK,
                               const Tensor& mix_MW, const Tensor& lse) const {
  const int64_t all = tokens_ * context_.parts;
  ForEachChunk(ctx, [&](int64_t sample, int64_t place, const TokenSlice& chunk) {
    const int64_t begin = place * chunk.count, end = begin + chunk.count;
    ctx.backend->attention().CrossForward(ChunkShape(ctx, sample, chunk), qkv_MQ.Rows(begin, end),
                                          keys_NK.Rows(sample * all, (sample + 1) * all),
                                          mix_MW.Rows(begin, end), lse.Rows(place, place + 1));
  });
}

Tensor GptAttention::GradientOfAll(const LayerContext& ctx, Tensor dmix_MW,
                                   std::vector<Tensor>* kept) const {
  const Tensor &qkv_MQ = (*kept)[kQkv], &mix_MW = (*kept)[kMix];
  Tensor keys_NK = GatherKeys(ctx, qkv_MQ);
  Tensor dqkv_MQ = AllocateLike(ctx, qkv_MQ), dkeys_NK = AllocateLike(ctx, keys_NK);
  const int64_t all = tokens_ * context_.parts;
  int64_t begun = -1;  // the sample whose keys have a gradient
  ForEachChunk(ctx, [&](int64_t sample, int64_t place, const TokenSlice& chunk) {
    const int64_t begin = place * chunk.count, end = begin + chunk.count;
    const int64_t first = sample * all, last = first + all;
    CrossAttentionShape shape = ChunkShape(ctx, sample, chunk);
    shape.adds_keys = std::exchange(begun, sample) == sample;
    ctx.backend->attention().CrossGradient(shape, dmix_MW.Rows(begin, end), qkv_MQ.Rows(begin, end),
                                           keys_NK.Rows(first, last), mix_MW.Rows(begin, end),
                                           (*kept)[kLse].Rows(place, place + 1),
                                           dqkv_MQ.Rows(begin, end), dkeys_NK.Rows(first, last));
  });
  dmix_MW = keys_NK = (*kept)[kLse] = Tensor();
  ScatterKeys(ctx, std::move(dkeys_NK), dqkv_MQ);
  return dqkv_MQ;
}

Tensor GptAttention::JoinSequence(const LayerContext& ctx, Tensor qkv_MQ) const {
  std::vector<Tensor>& shared = ctx.sequence->tensors;
  if (shared.empty()) {  // the first slice's forward; not its recompute
    shared.push_back(ctx.backend->Allocate({ctx.samples * tokens_, qkv_width_}));
  }
  CopySlice(ctx, Copying::kIn, qkv_MQ, shared[kSequence]);
  return shared[kSequence];
}

Tensor GptAttention::SliceGradient(const LayerContext& ctx, Tensor dmix_MW,
                                   std::vector<Tensor>* kept) const {
  std::vector<Tensor>& shared = ctx.sequence->tensors;
  if (ctx.slice.end() == tokens_) shared.push_back(AllocateLike(ctx, shared[kSequence]));
  ctx.backend->attention().Gradient(ShapeFor(ctx), dmix_MW, shared[kSequence], (*kept)[kMix],
                                    (*kept)[kLse], shared[kDsequence]);
  const int64_t m = dmix_MW.dim(0);
  dmix_MW = (*kept)[kLse] = Tensor();
  Tensor dqkv_MQ = ctx.backend->Allocate({m, qkv_width_});
  CopySlice(ctx, Copying::kOut, dqkv_MQ, shared[kDsequence]);
  if (ctx.slice.first == 0) shared.clear();
  return dqkv_MQ;
}

}  // namespace pipelab
