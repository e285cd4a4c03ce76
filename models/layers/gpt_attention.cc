// Runs what gpt_attention_spec.h describes. x_MC, y_MC; M = samples * tokens, of a slice where it
// works on slices.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "models/layers/block_parts.h"
#include "models/layers/layer.h"
#include "models/layers/makers.h"
#include "models/layers/tensor_peers.h"
#include "models/specs/gpt_attention_spec.h"

namespace pipelab {
namespace {

using P = GptAttentionParameter;

enum class Copying { kIn, kOut };

class GptAttention : public UnaryLayer {
 public:
  explicit GptAttention(const LayerSpec& spec);

 private:
  Tensor Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;
  Tensor InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                       LayerStash* stash) override;
  void WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) override;

  const Parameter& At(int place) const { return all_.Of(parameters_, place); }

  AttentionShape ShapeFor(const LayerContext& ctx) const;
  bool has_norms() const { return !At(P::kQueryGamma).value.empty(); }
  // Norms of the heads of q and k, in place: what they were, and their reciprocal deviations.
  std::vector<Tensor> NormHeads(const LayerContext& ctx, const Tensor& qkv_MQ) const;
  // The same of their gradients, with what NormHeads gave. The gammas' gradients, in a new tensor.
  Tensor NormHeadsGradient(const LayerContext& ctx, absl::Span<const Tensor> heads,
                           const Tensor& dqkv_MQ) const;
  // Turns the pass's q and k, or their gradients back, where positions are rotary.
  void Rotate(const LayerContext& ctx, bool back, const Tensor& qkv_MQ) const;
  // Slices: puts q, k, v of the slice in their places among the samples', which it returns.
  Tensor JoinSequence(const LayerContext& ctx, Tensor qkv_MQ) const;
  // Slices: the gradient of the slice's q, k, v, complete once it is the slice's turn. Gives up
  // dmix and lse.
  Tensor SliceGradient(const LayerContext& ctx, Tensor dmix_MW, std::vector<Tensor>* kept) const;

  // Context parallelism. Calls fn(sample, place of its chunk, the chunk's tokens) for the device's
  // chunks, each of which is a call of the kernel; of a sample the last tokens first.
  template <typename Fn>
  void ForEachChunk(const LayerContext& ctx, Fn&& fn) const;
  CrossAttentionShape ChunkShape(const LayerContext& ctx, int64_t sample,
                                 const TokenSlice& chunk) const;
  // Between k and v of all tokens as the devices have them, part after part, and in their order.
  void CopyParts(const LayerContext& ctx, Copying way, const Tensor& parts_NK,
                 const Tensor& keys_NK) const;
  // The keys and values of all tokens of the samples, side by side.
  Tensor GatherKeys(const LayerContext& ctx, const Tensor& qkv_MQ) const;
  // Sums the devices' gradients of these, and puts those of the own tokens into dqkv.
  void ScatterKeys(const LayerContext& ctx, Tensor dkeys_NK, const Tensor& dqkv_MQ) const;
  void AttendToAll(const LayerContext& ctx, const Tensor& qkv_MQ, const Tensor& keys_NK,
                   const Tensor& mix_MW, const Tensor& lse) const;
  // The gradient of the own q, k, v. Gives up dmix and lse.
  Tensor GradientOfAll(const LayerContext& ctx, Tensor dmix_MW, std::vector<Tensor>* kept) const;

  ProductRows rows_;
  ContextPart context_;
  int64_t tokens_, hidden_, heads_, kv_heads_, head_size_;
  int64_t width_, qkv_width_;  // of all heads; of q, k and v
  bool causal_, has_key_lengths_;
  double rotary_base_;
  ResidualDropout residual_;
  PresentParameters all_;
};

// Places in the stash. The forward leaves the first five; the input gradient replaces q, k, v by
// their gradient and adds the next two. "Mix" is the attention's output, "branch" what the residual
// adds to x. With norms of q and k what NormHeads gave is from kHeads on, until the input gradient
// has their gammas' gradients in the place behind the others.
enum { kMean, kRstd, kMix, kQkv, kLse, kDbranch, kDnorm, kDgammas };
constexpr int kHeads = kDbranch;
// Places in the stash that the slices of a micro-batch share: q, k, v of its whole samples and
// their gradient.
enum { kSequence, kDsequence };

// Copies a slice's rows to (kIn) or from (kOut) their places in whole samples of `tokens`.
void CopySlice(const LayerContext& ctx, Copying way, const Tensor& slice_MC, int64_t tokens,
               const Tensor& sequence_MC) {
  const int64_t count = ctx.slice.count;
  for (int64_t s = 0; s < ctx.samples; ++s) {
    const int64_t place = s * tokens + ctx.slice.first;
    const Tensor rows = slice_MC.Rows(s * count, (s + 1) * count),
                 at = sequence_MC.Rows(place, place + count);
    if (way == Copying::kIn) {
      ctx.backend->Copy(rows, at);
    } else {
      ctx.backend->Copy(at, rows);
    }
  }
}

GptAttention::GptAttention(const LayerSpec& spec)
    : rows_(spec),
      context_(spec.context),
      tokens_(rows_.all(spec.output_shape[0])),
      hidden_(spec.output_shape[1]),
      heads_(static_cast<int64_t>(Attribute(spec, "heads"))),
      kv_heads_(static_cast<int64_t>(Attribute(spec, "kv_heads"))),
      head_size_(static_cast<int64_t>(Attribute(spec, "head_size"))),
      width_(heads_ * head_size_),
      qkv_width_(width_ + 2 * kv_heads_ * head_size_),
      causal_(Attribute(spec, "causal") != 0),
      has_key_lengths_(!spec.data.empty()),
      rotary_base_(Attribute(spec, "rotary_base")),
      residual_(spec),
      all_(spec, {"gamma", "beta", "wqkv", "bqkv", "wo", "bo", "qgamma", "kgamma"}) {}

AttentionShape GptAttention::ShapeFor(const LayerContext& ctx) const {
  AttentionShape shape;
  shape.samples = ctx.samples;
  shape.tokens = tokens_;
  shape.heads = heads_;
  shape.kv_heads = kv_heads_;
  shape.head_size = head_size_;
  shape.causal = causal_;
  if (has_key_lengths_) shape.key_lengths = ctx.batch->HostIdsOf(0);
  shape.first_query = ctx.slice.first;
  shape.queries = ctx.slice.count;
  return shape;
}

std::vector<Tensor> GptAttention::NormHeads(const LayerContext& ctx, const Tensor& qkv_MQ) const {
  Backend& b = *ctx.backend;
  std::vector<Tensor> heads;
  const int64_t m = qkv_MQ.dim(0);
  for (const bool keys : {false, true}) {
    const int64_t width = keys ? kv_heads_ * head_size_ : width_, from = keys ? width_ : 0;
    heads.push_back(b.Allocate({m, width}));
    heads.push_back(b.AllocateFloats({m * width / head_size_}));
    b.CopyColumns(qkv_MQ, from, heads[heads.size() - 2], 0, width);
    const Tensor rows = heads[heads.size() - 2].Reshape({m * width / head_size_, head_size_});
    const Tensor normed = AllocateLike(ctx, rows);
    b.LayerNorm(rows, At(keys ? P::kKeyGamma : P::kQueryGamma).value, Tensor(), normed, Tensor(),
                heads.back());
    b.CopyColumns(normed.Reshape({m, width}), 0, qkv_MQ, from, width);
  }
  return heads;
}

Tensor GptAttention::NormHeadsGradient(const LayerContext& ctx, absl::Span<const Tensor> heads,
                                       const Tensor& dqkv_MQ) const {
  Backend& b = *ctx.backend;
  const int64_t m = dqkv_MQ.dim(0);
  Tensor dgammas_2D = b.AllocateFloats({2, head_size_});
  b.Fill(dgammas_2D, 0);
  for (const int keys : {0, 1}) {
    const int64_t width = keys == 1 ? kv_heads_ * head_size_ : width_;
    const int64_t from = keys == 1 ? width_ : 0;
    const Tensor rows = heads[2 * keys].Reshape({m * width / head_size_, head_size_});
    const Tensor& rstd = heads[2 * keys + 1];
    const Tensor dy = AllocateLike(ctx, rows), dx = AllocateLike(ctx, rows);
    b.CopyColumns(dqkv_MQ, from, dy.Reshape({m, width}), 0, width);
    b.LayerNormWeightGradient(dy, rows, Tensor(), rstd,
                              dgammas_2D.Rows(keys, keys + 1).Reshape({head_size_}), Tensor());
    b.LayerNormInputGradient(dy, rows, At(keys == 1 ? P::kKeyGamma : P::kQueryGamma).value,
                             Tensor(), rstd, dx);
    b.CopyColumns(dx.Reshape({m, width}), 0, dqkv_MQ, from, width);
  }
  // Whole parameters, of which each device has the gradient of its heads. With sequence parallelism
  // these are summed in the end.
  if (rows_.part().parts == 1) SumOverPeers(ctx, dgammas_2D);
  return dgammas_2D;
}

void GptAttention::Rotate(const LayerContext& ctx, bool back, const Tensor& qkv_MQ) const {
  if (rotary_base_ == 0) return;
  RotaryShape shape;
  shape.samples = ctx.samples;
  shape.tokens = ctx.slice.CountOf(tokens_);
  shape.first_token = ctx.slice.first;
  shape.heads = heads_ + kv_heads_;  // of q, then of k
  shape.head_size = head_size_;
  shape.base = rotary_base_;
  if (context_.whole()) {
    ctx.backend->attention().Rotate(shape, back, qkv_MQ);
    return;
  }
  shape.samples = 1;
  ForEachChunk(ctx, [&](int64_t, int64_t place, const TokenSlice& chunk) {
    shape.tokens = chunk.count;
    shape.first_token = chunk.first;
    ctx.backend->attention().Rotate(shape, back,
                                    qkv_MQ.Rows(place * chunk.count, (place + 1) * chunk.count));
  });
}

template <typename Fn>
void GptAttention::ForEachChunk(const LayerContext& ctx, Fn&& fn) const {
  const std::vector<TokenSlice> chunks = context_.Tokens(tokens_ * context_.parts);
  const auto count = static_cast<int64_t>(chunks.size());
  for (int64_t sample = 0; sample < ctx.samples; ++sample) {
    for (int64_t i = count - 1; i >= 0; --i) fn(sample, sample * count + i, chunks[i]);
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
  CopySlice(ctx, Copying::kIn, qkv_MQ, tokens_, shared[kSequence]);
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
  CopySlice(ctx, Copying::kOut, dqkv_MQ, tokens_, shared[kDsequence]);
  if (ctx.slice.first == 0) shared.clear();
  return dqkv_MQ;
}

Tensor GptAttention::Run(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  const int64_t own = x_MC.dim(0), m = rows_.all(own);
  Tensor mean_M = AllocateMeans(ctx, At(P::kBeta), own), rstd_M = b.AllocateFloats({own});
  Tensor norm_MC = NormAgain(ctx, x_MC, At(P::kGamma), At(P::kBeta), mean_M, rstd_M);
  norm_MC = rows_.Gather(ctx, std::move(norm_MC));
  Tensor qkv_MQ = b.Allocate({m, qkv_width_});
  b.Linear(norm_MC, At(P::kWqkv).value, At(P::kBqkv).value, qkv_MQ);
  norm_MC = Tensor();
  std::vector<Tensor> heads;
  if (has_norms()) heads = NormHeads(ctx, qkv_MQ);
  Rotate(ctx, /*back=*/false, qkv_MQ);
  if (!ctx.slice.whole()) qkv_MQ = JoinSequence(ctx, std::move(qkv_MQ));
  Tensor keys_NK;  // of all devices with context parallelism
  if (!context_.whole()) keys_NK = GatherKeys(ctx, qkv_MQ);
  Tensor mix_MW = b.Allocate({m, width_});
  const int64_t queries = ctx.slice.CountOf(tokens_) / context_.chunks();
  Tensor lse_SHT = b.AllocateFloats({ctx.samples * context_.chunks(), heads_, queries});
  if (context_.whole()) {
    b.attention().Forward(ShapeFor(ctx), qkv_MQ, mix_MW, lse_SHT);
  } else {
    AttendToAll(ctx, qkv_MQ, std::exchange(keys_NK, Tensor()), mix_MW, lse_SHT);
  }
  Tensor branch_MC = b.Allocate({m, hidden_});
  b.Linear(mix_MW, At(P::kWo).value, BiasOfOne(ctx, At(P::kBo)), branch_MC);
  branch_MC = rows_.Sum(ctx, std::move(branch_MC));
  if (!ctx.slice.whole()) qkv_MQ = Tensor();  // the slices have it together
  stash->tensors = {std::move(mean_M), std::move(rstd_M), std::move(mix_MW), std::move(qkv_MQ),
                    std::move(lse_SHT)};
  stash->tensors.insert(stash->tensors.end(), heads.begin(), heads.end());
  return residual_.Join(ctx, x_MC, std::move(branch_MC));
}

Tensor GptAttention::InputGradient(const LayerContext& ctx, const Tensor& x_MC, Tensor dy,
                                   LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  const int64_t m = rows_.all(x_MC.dim(0));
  Tensor dbranch_MC = rows_.Gather(ctx, residual_.BranchGradient(ctx, dy));
  Tensor dmix_MW = b.Allocate({m, width_});
  b.LinearInputGradient(dbranch_MC, At(P::kWo).value, dmix_MW);
  if (!context_.whole()) {
    kept[kQkv] = GradientOfAll(ctx, std::move(dmix_MW), &kept);
  } else if (ctx.slice.whole()) {
    Tensor dqkv_MQ = AllocateLike(ctx, kept[kQkv]);
    b.attention().Gradient(ShapeFor(ctx), dmix_MW, kept[kQkv], kept[kMix], kept[kLse], dqkv_MQ);
    dmix_MW = kept[kLse] = Tensor();
    kept[kQkv] = std::move(dqkv_MQ);
  } else {
    kept[kQkv] = SliceGradient(ctx, std::move(dmix_MW), &kept);
  }
  Rotate(ctx, /*back=*/true, kept[kQkv]);
  Tensor dgammas_2D;
  if (has_norms()) {
    dgammas_2D = NormHeadsGradient(ctx, absl::MakeConstSpan(kept).subspan(kHeads), kept[kQkv]);
    kept.resize(kHeads);
  }
  Tensor dnorm_MC = b.Allocate({m, hidden_});
  b.LinearInputGradient(kept[kQkv], At(P::kWqkv).value, dnorm_MC);
  dnorm_MC = rows_.Sum(ctx, std::move(dnorm_MC));
  Tensor dx_MC =
      NormResidualGradient(ctx, dnorm_MC, x_MC, At(P::kGamma), kept[kMean], kept[kRstd], dy);
  kept.insert(kept.end(), {std::move(dbranch_MC), std::move(dnorm_MC), std::move(dgammas_2D)});
  return dx_MC;
}

void GptAttention::WeightGradient(const LayerContext& ctx, const Tensor& x_MC, LayerStash* stash) {
  Backend& b = *ctx.backend;
  std::vector<Tensor>& kept = stash->tensors;
  b.LinearWeightGradient(kept[kMix], kept[kDbranch], At(P::kWo).gradient,
                         BiasGradientOfOne(ctx, rows_.part(), At(P::kBo)));
  kept[kMix] = kept[kDbranch] = Tensor();
  b.LayerNormWeightGradient(kept[kDnorm], x_MC, kept[kMean], kept[kRstd], At(P::kGamma).gradient,
                            At(P::kBeta).gradient);
  kept[kDnorm] = Tensor();
  const Tensor norm_MC = rows_.Gather(
      ctx, NormAgain(ctx, x_MC, At(P::kGamma), At(P::kBeta), kept[kMean], kept[kRstd]));
  b.LinearWeightGradient(norm_MC, kept[kQkv], At(P::kWqkv).gradient, At(P::kBqkv).gradient);
  for (const int keys : {0, 1}) {
    if (!has_norms()) break;
    const Tensor& gradient = At(keys == 1 ? P::kKeyGamma : P::kQueryGamma).gradient;
    b.Add(gradient, kept[kDgammas].Rows(keys, keys + 1).Reshape({head_size_}), gradient);
  }
  kept.clear();
}

}  // namespace

std::unique_ptr<Layer> MakeGptAttention(const LayerSpec& spec) {
  return std::make_unique<GptAttention>(spec);
}

}  // namespace pipelab
