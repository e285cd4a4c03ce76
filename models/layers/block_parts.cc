#include "models/layers/block_parts.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/layers/tensor_peers.h"
#include "models/specs/block_kinds.h"

namespace pipelab {

PresentParameters::PresentParameters(const LayerSpec& spec,
                                     std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::string ending = absl::StrCat("/", name);
    const auto at =
        std::find_if(spec.parameters.begin(), spec.parameters.end(),
                     [&](const ParameterSpec& p) { return absl::EndsWith(p.name, ending); });
    const bool there = at != spec.parameters.end();
    places_.push_back(there ? static_cast<int>(at - spec.parameters.begin()) : -1);
  }
}

Tensor AllocateMeans(const LayerContext& ctx, const Parameter& beta, int64_t rows) {
  return beta.value.empty() ? Tensor() : ctx.backend->AllocateFloats({rows});
}

Tensor AllocateDeviations(const LayerContext& ctx, const Parameter& gamma, int64_t rows) {
  return gamma.value.empty() ? Tensor() : ctx.backend->AllocateFloats({rows});
}

ResidualDropout::ResidualDropout(const LayerSpec& spec)
    : prefix_(absl::StrCat("dropout/", spec.name, "/step")),
      rate_(static_cast<float>(Attribute(spec, "dropout"))),
      residual_(spec.attributes.count(kNoResidual) == 0),
      rows_(spec.rows),
      context_(spec.context),
      tokens_(TokensOf(spec)),
      elements_per_token_(std::accumulate(spec.output_shape.begin() + 1, spec.output_shape.end(),
                                          int64_t{1}, std::multiplies<int64_t>())) {}

DropoutMask ResidualDropout::Mask(const LayerContext& ctx) const {
  DropoutMask mask;
  mask.rate = ctx.training ? rate_ : 0;
  mask.rng = CounterRng(ctx.seed, absl::StrCat(prefix_, ctx.step));
  mask.offset = static_cast<uint64_t>(ctx.first_sample * tokens_ * elements_per_token_);
  return mask;
}

template <typename Fn>
void ResidualDropout::ForEachRange(const LayerContext& ctx, int64_t rows, Fn&& fn) const {
  DropoutMask mask = Mask(ctx);
  if (ctx.slice.whole() && rows_.parts == 1 && context_.whole()) {
    fn(int64_t{0}, rows, mask);
    return;
  }
  const int64_t count = rows / ctx.samples, step_begin = static_cast<int64_t>(mask.offset);
  const int64_t first = ctx.slice.first + rows_.part * count;
  const std::vector<TokenSlice> ranges = context_.Tokens(tokens_, {first, count});
  for (int64_t sample = 0; sample < ctx.samples; ++sample) {
    int64_t begin = sample * count;
    for (const TokenSlice& range : ranges) {
      mask.offset = static_cast<uint64_t>(step_begin +
                                          (sample * tokens_ + range.first) * elements_per_token_);
      fn(begin, begin + range.count, mask);
      begin += range.count;
    }
  }
}

Tensor ResidualDropout::Join(const LayerContext& ctx, const Tensor& x, Tensor branch_MC) const {
  ForEachRange(ctx, x.dim(0), [&](int64_t begin, int64_t end, const DropoutMask& mask) {
    const Tensor branch = branch_MC.Rows(begin, end);
    if (!residual_) {
      if (mask.rate > 0) ctx.backend->Dropout(branch, mask, branch);
      return;
    }
    ctx.backend->AddDropout(x.Rows(begin, end), branch, mask, branch);
  });
  return branch_MC;
}

Tensor ResidualDropout::BranchGradient(const LayerContext& ctx, const Tensor& dy_MC) const {
  if (Mask(ctx).rate == 0) return dy_MC;
  Tensor branch_MC = AllocateLike(ctx, dy_MC);
  ForEachRange(ctx, dy_MC.dim(0), [&](int64_t begin, int64_t end, const DropoutMask& mask) {
    ctx.backend->Dropout(dy_MC.Rows(begin, end), mask, branch_MC.Rows(begin, end));
  });
  return branch_MC;
}

Tensor ProductRows::Gather(const LayerContext& ctx, Tensor own_MC) const {
  if (part_.parts == 1) return own_MC;
  Tensor all_MC = ctx.backend->Allocate({all(own_MC.dim(0)), own_MC.dim(1)});
  ctx.peers->GatherRows(own_MC, all_MC, ctx.samples);
  return all_MC;
}

Tensor ProductRows::Sum(const LayerContext& ctx, Tensor all_MC) const {
  if (part_.parts == 1) {
    SumOverPeers(ctx, all_MC);
    return all_MC;
  }
  Tensor own_MC = ctx.backend->Allocate({all_MC.dim(0) / part_.parts, all_MC.dim(1)});
  ctx.peers->ScatterSums(all_MC, own_MC, ctx.samples);
  return own_MC;
}

Tensor NormAgain(const LayerContext& ctx, const Tensor& x_MC, const Parameter& gamma,
                 const Parameter& beta, const Tensor& mean_M, const Tensor& rstd_M) {
  if (gamma.value.empty()) return x_MC;
  Tensor norm_MC = AllocateLike(ctx, x_MC);
  ctx.backend->LayerNorm(x_MC, gamma.value, beta.value, norm_MC, mean_M, rstd_M);
  return norm_MC;
}

Tensor NormResidualGradient(const LayerContext& ctx, const Tensor& dnorm_MC, const Tensor& x_MC,
                            const Parameter& gamma, const Tensor& mean_M, const Tensor& rstd_M,
                            const Tensor& dy_MC) {
  Tensor dx_MC = dnorm_MC;
  if (!gamma.value.empty()) {
    dx_MC = AllocateLike(ctx, x_MC);
    ctx.backend->LayerNormInputGradient(dnorm_MC, x_MC, gamma.value, mean_M, rstd_M, dx_MC);
  }
  if (!dy_MC.empty()) ctx.backend->Add(dx_MC, dy_MC, dx_MC);
  return dx_MC;
}

void NormWeightGradient(const LayerContext& ctx, const Tensor& dnorm_MC, const Tensor& x_MC,
                        const Parameter& gamma, const Parameter& beta, const Tensor& mean_M,
                        const Tensor& rstd_M) {
  if (gamma.value.empty()) return;
  ctx.backend->LayerNormWeightGradient(dnorm_MC, x_MC, mean_M, rstd_M, gamma.gradient,
                                       beta.gradient);
}

void AddToRows(const LayerContext& ctx, const Tensor& value_C, const Tensor& y_MC) {
  Backend& b = *ctx.backend;
  const int64_t c = value_C.dim(0), m = y_MC.dim(0), most = std::min(kRowsAtOnce, m);
  const Tensor ones = b.Allocate({most, 1}), rows = b.Allocate({most, c});
  b.Fill(ones, 1);
  b.Linear(ones, value_C.Reshape({1, c}), Tensor(), rows);
  for (int64_t first = 0; first < m; first += most) {
    const Tensor some = y_MC.Rows(first, std::min(first + most, m));
    b.Add(some, rows.Rows(0, some.dim(0)), some);
  }
}

void AddRowsTo(const LayerContext& ctx, const Tensor& dy_MC, const Tensor& gradient_C) {
  const Tensor ones = ctx.backend->Allocate({dy_MC.dim(0), 1});
  ctx.backend->Fill(ones, 1);
  ctx.backend->LinearWeightGradient(ones, dy_MC, gradient_C.Reshape({1, gradient_C.dim(0)}),
                                    Tensor());
}

Tensor AllocateLike(const LayerContext& ctx, const Tensor& like) {
  return ctx.backend->arena().Allocate(like.type(), like.shape(), MemoryKind::kActivation);
}

}  // namespace pipelab
