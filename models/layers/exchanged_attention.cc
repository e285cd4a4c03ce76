#include "models/layers/exchanged_attention.h"

#include <functional>
#include <utility>
#include <vector>

namespace pipelab {

ExchangedAttention::ExchangedAttention(const LayerContext& ctx, const CrossAttentionShape& heads,
                                       int64_t tokens)
    : ctx_(ctx), heads_(heads), tokens_(tokens), count_(ctx.slice.count) {
  for (const Share& share : ctx.exchange->given()) begin_ += share.count * count_;
}

Tensor ExchangedAttention::OfSlice(const Tensor& x_M, int64_t sample) const {
  return x_M.Rows(sample * count_, (sample + 1) * count_);
}
Tensor ExchangedAttention::Kept(const Tensor& x_N, int64_t sample) const {
  return x_N.Rows(sample * tokens_ + begin_, (sample + 1) * tokens_);
}
Tensor ExchangedAttention::SliceIn(const Tensor& x_N, int64_t sample) const {
  const int64_t first = sample * tokens_ + ctx_.slice.first;
  return x_N.Rows(first, first + count_);
}
Tensor ExchangedAttention::ShareIn(const Tensor& x_N, const Share& share, int64_t sample) const {
  const int64_t first = sample * tokens_ + share.first * count_;
  return x_N.Rows(first, first + share.count * count_);
}

AttentionShape ExchangedAttention::OwnShape() const {
  AttentionShape shape;
  shape.samples = 1;
  shape.tokens = tokens_ - begin_;
  shape.heads = heads_.heads;
  shape.kv_heads = heads_.kv_heads;
  shape.head_size = heads_.head_size;
  shape.key_tile = heads_.key_tile;
  shape.first_query = ctx_.slice.first - begin_;
  shape.queries = count_;
  return shape;
}

CrossAttentionShape ExchangedAttention::ShapeOf(const Share& share) const {
  CrossAttentionShape shape = heads_;
  shape.samples = ctx_.samples;
  shape.queries = count_;
  shape.keys = share.count * count_;
  shape.causal = false;  // all of them are before the slice
  shape.q_row = 0;
  return shape;
}

Tensor ExchangedAttention::Queries(const Tensor& qkv_NQ) const {
  Tensor q_MW = backend().Allocate(QueryShape());
  for (int64_t s = 0; s < ctx_.samples; ++s) {
    backend().CopyColumns(SliceIn(qkv_NQ, s), 0, OfSlice(q_MW, s), 0, query_width());
  }
  return q_MW;
}

Tensor ExchangedAttention::Keys(const Tensor& qkv_NQ, const Share& share) const {
  Tensor keys = backend().Allocate(KeyShape(share));
  const int64_t rows = share.count * count_;
  for (int64_t s = 0; s < ctx_.samples; ++s) {
    backend().CopyColumns(ShareIn(qkv_NQ, share, s), query_width(),
                          keys.Rows(s * rows, (s + 1) * rows), 0, key_width());
  }
  return keys;
}

Tensor ExchangedAttention::CopyOf(const Tensor& x) const {
  Tensor copy = backend().arena().Allocate(x.type(), x.shape(), MemoryKind::kActivation);
  backend().Copy(x, copy);
  return copy;
}

std::function<Tensor()> ExchangedAttention::Receive(DataType type, const Shape& shape,
                                                    int peer) const {
  return ctx_.exchange->Receive(type, shape, peer, &backend().arena());
}

void ExchangedAttention::Forward(const Tensor& qkv_NQ, const Tensor& mix_MW,
                                 const Tensor& lse_SHT) const {
  ChunkExchange& exchange = *ctx_.exchange;
  const DataType type = mix_MW.type();
  for (const Share& share : exchange.given()) {
    exchange.Send(Queries(qkv_NQ), share.peer);
    exchange.Send(Keys(qkv_NQ, share), share.peer);
  }
  std::vector<std::function<Tensor()>> coming;
  for (const Share& share : exchange.given()) {
    coming.push_back(Receive(type, QueryShape(), share.peer));
    coming.push_back(Receive(lse_SHT.type(), lse_SHT.shape(), share.peer));
  }
  for (const Share& share : exchange.received()) {
    coming.push_back(Receive(type, QueryShape(), share.peer));
    coming.push_back(Receive(type, KeyShape(share), share.peer));
  }
  for (int64_t s = 0; s < ctx_.samples; ++s) {
    backend().attention().Forward(OwnShape(), Kept(qkv_NQ, s), OfSlice(mix_MW, s),
                                  lse_SHT.Rows(s, s + 1));
  }
  auto next = coming.begin();
  for (size_t i = 0; i < exchange.given().size(); ++i) {
    const Tensor part_MW = (*next++)(), part_lse = (*next++)();
    for (int64_t s = 0; s < ctx_.samples; ++s) {
      backend().attention().Merge(OfSlice(part_MW, s), part_lse.Rows(s, s + 1), OfSlice(mix_MW, s),
                                  lse_SHT.Rows(s, s + 1));
    }
  }
  for (const Share& share : exchange.received()) {
    Tensor q_MW = (*next++)(), keys = (*next++)();
    Tensor out_MW = backend().Allocate(QueryShape());
    Tensor sums = backend().AllocateFloats(lse_SHT.shape());
    backend().attention().CrossForward(ShapeOf(share), q_MW, keys, out_MW, sums);
    q_MW = keys = Tensor();
    exchange.Send(std::move(out_MW), share.peer);
    exchange.Send(std::move(sums), share.peer);
  }
}

void ExchangedAttention::Gradient(Tensor dmix_MW, const Tensor& qkv_NQ, const Tensor& mix_MW,
                                  Tensor lse_SHT, const Tensor& dqkv_NQ) const {
  if (ctx_.exchange->given().empty()) {
    HelpGradient(std::move(dmix_MW), qkv_NQ, mix_MW, std::move(lse_SHT), dqkv_NQ);
  } else {
    GiveGradient(std::move(dmix_MW), qkv_NQ, mix_MW, std::move(lse_SHT), dqkv_NQ);
  }
}

// The last slice's writes the gradients of all keys and values, which others add to.
void ExchangedAttention::OwnGradient(const Tensor& dmix_MW, const Tensor& qkv_NQ,
                                     const Tensor& mix_MW, const Tensor& lse_SHT,
                                     const Tensor& dqkv_NQ) const {
  const bool last = ctx_.slice.end() == tokens_;
  for (int64_t s = 0; s < ctx_.samples; ++s) {
    if (last && begin_ > 0) {
      backend().Fill(dqkv_NQ.Rows(s * tokens_, s * tokens_ + begin_), 0);
    }
    backend().attention().Gradient(OwnShape(), OfSlice(dmix_MW, s), Kept(qkv_NQ, s),
                                   OfSlice(mix_MW, s), lse_SHT.Rows(s, s + 1), Kept(dqkv_NQ, s));
  }
}

void ExchangedAttention::AddColumns(const Tensor& part, const Tensor& rows, int64_t column) const {
  const int64_t width = part.dim(1);
  const Tensor sum = backend().Allocate(part.shape());
  backend().CopyColumns(rows, column, sum, 0, width);
  backend().Add(sum, part, sum);
  backend().CopyColumns(sum, 0, rows, column, width);
}

void ExchangedAttention::GiveGradient(Tensor dmix_MW, const Tensor& qkv_NQ, const Tensor& mix_MW,
                                      Tensor lse_SHT, const Tensor& dqkv_NQ) const {
  ChunkExchange& exchange = *ctx_.exchange;
  const DataType type = dmix_MW.type();
  for (const Share& share : exchange.given()) {
    exchange.Send(Queries(qkv_NQ), share.peer);
    for (const Tensor* x : std::initializer_list<const Tensor*>{&dmix_MW, &mix_MW, &lse_SHT}) {
      exchange.Send(CopyOf(*x), share.peer);
    }
    exchange.Send(Keys(qkv_NQ, share), share.peer);
  }
  std::vector<std::function<Tensor()>> coming;
  for (const Share& share : exchange.given()) {
    coming.push_back(Receive(type, QueryShape(), share.peer));
    coming.push_back(Receive(type, KeyShape(share), share.peer));
  }
  OwnGradient(dmix_MW, qkv_NQ, mix_MW, lse_SHT, dqkv_NQ);
  dmix_MW = lse_SHT = Tensor();
  auto next = coming.begin();
  for (const Share& share : exchange.given()) {
    Tensor dq_MW = (*next++)();
    for (int64_t s = 0; s < ctx_.samples; ++s) {
      AddColumns(OfSlice(dq_MW, s), SliceIn(dqkv_NQ, s), 0);
    }
    dq_MW = Tensor();
    const Tensor dkeys = (*next++)();
    const int64_t rows = share.count * count_;
    for (int64_t s = 0; s < ctx_.samples; ++s) {
      AddColumns(dkeys.Rows(s * rows, (s + 1) * rows), ShareIn(dqkv_NQ, share, s), query_width());
    }
  }
}

void ExchangedAttention::HelpGradient(Tensor dmix_MW, const Tensor& qkv_NQ, const Tensor& mix_MW,
                                      Tensor lse_SHT, const Tensor& dqkv_NQ) const {
  ChunkExchange& exchange = *ctx_.exchange;
  const DataType type = dmix_MW.type(), float_type = lse_SHT.type();
  const Shape sums = lse_SHT.shape();
  std::vector<std::function<Tensor()>> coming;
  for (const Share& share : exchange.received()) {
    for (int i = 0; i < 3; ++i) coming.push_back(Receive(type, QueryShape(), share.peer));
    coming.push_back(Receive(float_type, sums, share.peer));
    coming.push_back(Receive(type, KeyShape(share), share.peer));
  }
  OwnGradient(dmix_MW, qkv_NQ, mix_MW, lse_SHT, dqkv_NQ);
  dmix_MW = lse_SHT = Tensor();
  auto next = coming.begin();
  for (const Share& share : exchange.received()) {
    Tensor dq_MW, dkeys;
    {
      const Tensor q_MW = (*next++)(), dout_MW = (*next++)(), out_MW = (*next++)();
      const Tensor lse = (*next++)(), keys = (*next++)();
      dq_MW = backend().Allocate(QueryShape());
      dkeys = backend().Allocate(KeyShape(share));
      backend().attention().CrossGradient(ShapeOf(share), dout_MW, q_MW, keys, out_MW, lse, dq_MW,
                                          dkeys);
    }
    exchange.Send(std::move(dq_MW), share.peer);
    exchange.Send(std::move(dkeys), share.peer);
  }
}

}  // namespace pipelab
