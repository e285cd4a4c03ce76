// Keys and values that travel from device to device (models/graph/context_ring.h).
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "models/layers/block_parts.h"
#include "models/layers/parted_attention.h"
#include "models/layers/tensor_peers.h"

namespace pipelab {

// Keys and values on their way: At(i), in the order of steps, are those of step i, while the next
// ones come.
class PartedAttention::Ring {
 public:
  Ring(const LayerContext& ctx, const std::vector<ContextStep>& steps, Tensor own_MK)
      : ctx_(ctx), steps_(steps), keys_(std::move(own_MK)) {
    if (steps.size() == 1) return;
    next_ = Shift(keys_, 1);
    if (steps.back().shift < 0) other_way_ = Shift(keys_, -1);
  }
  const Tensor& At(size_t i) {
    if (i == 0) return keys_;
    keys_ = next_();
    next_ = steps_[i].last ? std::move(other_way_) : Shift(keys_, steps_[i].shift > 0 ? 1 : -1);
    return keys_;
  }
  std::function<Tensor()> Shift(Tensor sent, int64_t places) const {
    return ctx_.context->Shift(std::move(sent), places, &ctx_.backend->arena());
  }

 private:
  const LayerContext& ctx_;
  const std::vector<ContextStep>& steps_;
  Tensor keys_;
  std::function<Tensor()> next_, other_way_;
};

template <typename Fn>
void PartedAttention::ForEachPair(const LayerContext& ctx, int64_t shift, Fn&& fn) const {
  const int64_t chunks = part_.chunks(), h = chunk();
  ContextPart from = part_;
  from.part = (part_.part - shift + part_.parts) % part_.parts;
  CrossAttentionShape shape = heads_;
  shape.samples = 1;
  shape.queries = shape.keys = h;
  int32_t length = 0;
  if (padded_) shape.key_lengths = absl::MakeConstSpan(&length, 1);
  for (int64_t sample = 0; sample < ctx.samples; ++sample) {
    for (int64_t q = 0; q < chunks; ++q) {
      for (int64_t k = chunks - 1; k >= 0; --k) {
        if (shape.causal) {
          const int64_t queries = part_.ChunkNumber(q), keys = from.ChunkNumber(k);
          shape.queries = SeeingQueries(queries, keys, h, shape.window);
          shape.first_query = (queries - keys) * h;
        } else if (padded_) {
          const int64_t all = ctx.batch->HostIdsOf(0)[sample];
          length = static_cast<int32_t>(std::max<int64_t>(0, std::min(h, all - from.part * h)));
        }
        if (shape.queries == 0 || (padded_ && length == 0)) continue;
        fn(shape, sample * chunks + q, sample * chunks + k);
      }
    }
  }
}

void PartedAttention::ForwardRing(const LayerContext& ctx, const Tensor& q_MQ, Tensor own_MK,
                                  const Tensor& mix_MW, const Tensor& lse) const {
  Backend& b = *ctx.backend;
  const int64_t h = chunk();
  const std::vector<ContextStep> steps = RingSteps(part_, h, heads_.window);
  std::vector<bool> begun(ctx.samples * part_.chunks());  // [place] whether there is an output
  Ring ring(ctx, steps, std::move(own_MK));
  for (size_t i = 0; i < steps.size(); ++i) {
    const Tensor& keys = ring.At(i);
    ForEachPair(ctx, steps[i].shift, [&](const CrossAttentionShape& shape, int64_t q, int64_t k) {
      const Tensor own_q = q_MQ.Rows(q * h, q * h + shape.queries);
      const Tensor other = keys.Rows(k * h, (k + 1) * h);
      const Tensor out = mix_MW.Rows(q * h, (q + 1) * h), sums = lse.Rows(q, q + 1);
      if (!begun[q]) {  // a chunk's own keys, which all of its queries see, come first
        b.attention().CrossForward(shape, own_q, other, out, sums);
        begun[q] = true;
        return;
      }
      const Tensor part = b.Allocate({shape.queries, mix_MW.dim(1)});
      const Tensor part_sums = b.AllocateFloats({shape.heads, shape.queries});
      b.attention().CrossForward(shape, own_q, other, part, part_sums);
      b.attention().Merge(part, part_sums, out, sums);
    });
  }
}

Tensor PartedAttention::GradientRing(const LayerContext& ctx, const Tensor& dmix_MW,
                                     const Tensor& q_MQ, Tensor own_MK, const Tensor& mix_MW,
                                     const Tensor& lse, const Tensor& dq_MQ) const {
  Backend& b = *ctx.backend;
  const int64_t h = chunk();
  const std::vector<ContextStep> steps = RingSteps(part_, h, heads_.window);
  const auto attend = [&](int64_t shift, const Tensor& keys, const Tensor& dkeys) {
    b.Fill(dkeys, 0);
    ForEachPair(ctx, shift, [&](CrossAttentionShape shape, int64_t q, int64_t k) {
      const int64_t first = q * h, last = first + shape.queries;
      Tensor sums = lse.Rows(q, q + 1);
      if (shape.queries < h) {
        sums = b.AllocateFloats({shape.heads, shape.queries});
        b.CopyColumns(lse.Rows(q, q + 1).Reshape({shape.heads, h}), 0, sums, 0, shape.queries);
      }
      shape.adds_keys = shape.adds_queries = true;
      b.attention().CrossGradient(shape, dmix_MW.Rows(first, last), q_MQ.Rows(first, last),
                                  keys.Rows(k * h, (k + 1) * h), mix_MW.Rows(first, last), sums,
                                  dq_MQ.Rows(first, last), dkeys.Rows(k * h, (k + 1) * h));
    });
  };
  b.Fill(dq_MQ, 0);
  Tensor own_dkeys = AllocateLike(ctx, own_MK);
  Ring ring(ctx, steps, std::move(own_MK));
  std::function<Tensor()> before;              // gradients of the step's keys from devices before
  std::vector<std::function<Tensor()>> homes;  // of the own keys
  for (size_t i = 0; i < steps.size(); ++i) {
    const Tensor& keys = ring.At(i);
    const int64_t shift = steps[i].shift;
    if (shift == 0) {
      attend(0, keys, own_dkeys);
      continue;
    }
    Tensor dkeys = AllocateLike(ctx, own_dkeys);
    attend(shift, keys, dkeys);
    if (before != nullptr) b.Add(dkeys, std::exchange(before, nullptr)(), dkeys);
    if (steps[i].last) {
      homes.push_back(ring.Shift(std::move(dkeys), -shift));
    } else {
      before = ring.Shift(std::move(dkeys), shift > 0 ? 1 : -1);
    }
  }
  for (const std::function<Tensor()>& home : homes) b.Add(own_dkeys, home(), own_dkeys);
  return own_dkeys;
}

}  // namespace pipelab
