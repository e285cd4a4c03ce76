// Heads that devices exchange for tokens (ContextExchange::kHeads; Jacobs et al., "DeepSpeed
// Ulysses", arXiv 2309.14509).
#include <utility>
#include <vector>

#include "models/layers/block_parts.h"
#include "models/layers/parted_attention.h"
#include "models/layers/tensor_peers.h"

namespace pipelab {

void PartedAttention::CopyHeads(const LayerContext& ctx, Copying way, const Tensor& parts_NX,
                                const Tensor& own_MX, absl::Span<const int64_t> columns) const {
  const int64_t rows = own_MX.dim(0);
  for (int64_t device = 0; device < part_.parts; ++device) {
    const Tensor part = parts_NX.Rows(device * rows, (device + 1) * rows);
    int64_t begin = 0;
    for (const int64_t all : columns) {
      const int64_t share = all / part_.parts, first = begin + device * share;
      const int64_t at = begin / part_.parts;
      if (way == Copying::kIn) {
        ctx.backend->CopyColumns(part, at, own_MX, first, share);
      } else {
        ctx.backend->CopyColumns(own_MX, first, part, at, share);
      }
      begin += all;
    }
  }
}

Tensor PartedAttention::Exchange(const LayerContext& ctx, const Tensor& parts_NX) const {
  Tensor came_NX = AllocateLike(ctx, parts_NX);
  const std::vector<int64_t> each(part_.parts, parts_NX.size() / part_.parts);
  ctx.context->Exchange(parts_NX, each, came_NX, each);
  return came_NX;
}

Tensor PartedAttention::ToHeads(const LayerContext& ctx, Tensor own_MX,
                                absl::Span<const int64_t> columns) const {
  if (!by_heads()) return own_MX;
  const Shape all = {own_MX.dim(0) * part_.parts, own_MX.dim(1) / part_.parts};
  Tensor parts_NX = ctx.backend->Allocate(all);
  CopyHeads(ctx, Copying::kOut, parts_NX, own_MX, columns);
  own_MX = Tensor();
  parts_NX = Exchange(ctx, parts_NX);
  Tensor heads_NX = ctx.backend->Allocate(all);
  CopyParts(ctx, Copying::kIn, parts_NX, heads_NX);
  return heads_NX;
}

Tensor PartedAttention::ToTokens(const LayerContext& ctx, Tensor heads_NX,
                                 absl::Span<const int64_t> columns) const {
  if (!by_heads()) return heads_NX;
  Tensor parts_NX = AllocateLike(ctx, heads_NX);
  CopyParts(ctx, Copying::kOut, parts_NX, heads_NX);
  heads_NX = Tensor();
  parts_NX = Exchange(ctx, parts_NX);
  Tensor own_MX =
      ctx.backend->Allocate({parts_NX.dim(0) / part_.parts, parts_NX.dim(1) * part_.parts});
  CopyHeads(ctx, Copying::kIn, parts_NX, own_MX, columns);
  return own_MX;
}

}  // namespace pipelab
