// Slices of the tokens, devices with parts of them, and caches.
#include <cstdint>
#include <utility>
#include <vector>

#include "models/layers/exchanged_attention.h"
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

CrossAttentionShape GptAttention::Heads(const LayerSpec& spec) {
  CrossAttentionShape shape;
  shape.heads = WholeAttribute(spec, "heads");
  shape.kv_heads = WholeAttribute(spec, "kv_heads");
  shape.head_size = WholeAttribute(spec, "head_size");
  shape.causal = Attribute(spec, "causal") != 0;
  shape.window = WholeAttribute(spec, "window");
  shape.key_tile = WholeAttribute(spec, "key_tile");
  shape.q_row = shape.width() + 2 * shape.kv_width();
  return shape;
}

std::vector<int64_t> GptAttention::Columns() const {
  const int64_t keys = kv_heads_ * head_size_;
  return {width_, keys, keys};
}

Tensor GptAttention::OwnKeys(const LayerContext& ctx, const Tensor& qkv_MQ) const {
  const int64_t k = qkv_width_ - width_;
  Tensor own_MK = ctx.backend->Allocate({qkv_MQ.dim(0), k});
  ctx.backend->CopyColumns(qkv_MQ, width_, own_MK, 0, k);
  return own_MK;
}

Tensor GptAttention::PartGradient(const LayerContext& ctx, Tensor dmix_MW,
                                  std::vector<Tensor>* kept) const {
  const Tensor& qkv_MQ = (*kept)[kQkv];
  Tensor keys = context_.Keys(ctx, OwnKeys(ctx, qkv_MQ)), dqkv_MQ = AllocateLike(ctx, qkv_MQ);
  const Tensor dkeys_MK = context_.Gradient(ctx, dmix_MW, qkv_MQ, std::move(keys), (*kept)[kMix],
                                            (*kept)[kLse], dqkv_MQ);
  dmix_MW = (*kept)[kLse] = Tensor();
  ctx.backend->CopyColumns(dkeys_MK, 0, dqkv_MQ, width_, dkeys_MK.dim(1));
  return dqkv_MQ;
}

Tensor GptAttention::JoinSequence(const LayerContext& ctx, const Tensor& qkv_MQ) const {
  std::vector<Tensor>& shared = ctx.sequence->tensors;
  if (shared.empty()) {  // the first slice's forward; not its recompute
    shared.push_back(ctx.backend->Allocate({ctx.samples * tokens_, qkv_width_}));
  }
  CopySlice(ctx, Copying::kIn, qkv_MQ, shared[kSequence]);
  return shared[kSequence];
}

void GptAttention::AttendCached(const LayerContext& ctx, const Tensor& qkv_MQ, const Tensor& mix_MW,
                                const Tensor& lse) const {
  Backend& b = *ctx.backend;
  const CachedPass& pass = *ctx.cached;
  const int64_t k = qkv_width_ - width_;
  std::vector<Tensor>& cache = ctx.sequence->tensors;
  if (cache.empty()) cache.push_back(b.Allocate({pass.slots * pass.slot_tokens, k}));
  CrossAttentionShape shape = context_.heads();
  shape.samples = 1;
  int64_t row = 0;
  for (const TokenRun& run : pass.runs) {
    const int64_t slot = run.slot * pass.slot_tokens, end = row + run.count;
    const Tensor rows = qkv_MQ.Rows(row, end);
    b.CopyColumns(rows, width_, cache[0].Rows(slot + run.first, slot + run.end()), 0, k);
    shape.queries = run.count;
    shape.first_query = run.first;
    shape.keys = run.end();
    b.attention().CrossForward(shape, rows, cache[0].Rows(slot, slot + run.end()),
                               mix_MW.Rows(row, end), lse.Rows(row, end));
    row = end;
  }
}

Tensor GptAttention::SliceGradient(const LayerContext& ctx, Tensor dmix_MW,
                                   std::vector<Tensor>* kept) const {
  std::vector<Tensor>& shared = ctx.sequence->tensors;
  if (ctx.slice.end() == tokens_) shared.push_back(AllocateLike(ctx, shared[kSequence]));
  const int64_t m = dmix_MW.dim(0);
  if (ctx.exchange != nullptr) {
    ExchangedAttention(ctx, context_.heads(), tokens_)
        .Gradient(std::move(dmix_MW), shared[kSequence], (*kept)[kMix], std::move((*kept)[kLse]),
                  shared[kDsequence]);
  } else {
    ctx.backend->attention().Gradient(ShapeFor(ctx), dmix_MW, shared[kSequence], (*kept)[kMix],
                                      (*kept)[kLse], shared[kDsequence]);
    dmix_MW = (*kept)[kLse] = Tensor();
  }
  Tensor dqkv_MQ = ctx.backend->Allocate({m, qkv_width_});
  CopySlice(ctx, Copying::kOut, dqkv_MQ, shared[kDsequence]);
  if (ctx.slice.first == 0) shared.clear();
  return dqkv_MQ;
}

}  // namespace pipelab
