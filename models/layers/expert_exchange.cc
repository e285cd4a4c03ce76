#include "models/layers/expert_exchange.h"

#include <numeric>
#include <utility>

#include "kernels/tensor/host_values.h"
#include "models/layers/tensor_peers.h"

namespace pipelab {
namespace {

Tensor AllocateIds(const LayerContext& ctx, int64_t size) {
  return ctx.backend->arena().Allocate(DataType::kInt32, {size}, MemoryKind::kActivation);
}

}  // namespace

Tensor ExpertExchange::MeetCounts(const LayerContext& ctx, const Tensor& begins_G1) {
  const std::vector<int32_t> begins = HostIds(begins_G1);
  const int64_t experts = static_cast<int64_t>(begins.size()) - 1;
  std::vector<int32_t> counts(experts);
  for (int64_t e = 0; e < experts; ++e) counts[e] = begins[e + 1] - begins[e];
  const Tensor own_E = AllocateIds(ctx, experts);
  Tensor all_E = AllocateIds(ctx, experts);
  SetHostIds(own_E, counts);
  const std::vector<int64_t> parts(ctx.experts->size(), experts / ctx.experts->size());
  ctx.experts->Exchange(own_E, parts, all_E, parts);
  if (!ctx.experts->status().ok()) SetHostIds(all_E, std::vector<int32_t>(experts, 0));
  return all_E;
}

ExpertExchange::ExpertExchange(const LayerContext& ctx, const Tensor& begins_G1,
                               const Tensor& counts_E) {
  const std::vector<int32_t> begins = HostIds(begins_G1), counts = HostIds(counts_E);
  const int64_t devices = ctx.experts->size(), here = counts_E.size() / devices;
  for (int64_t d = 0; d < devices; ++d) {
    const auto first = counts.begin() + d * here;
    to_.push_back(begins[(d + 1) * here] - begins[d * here]);
    from_.push_back(std::accumulate(first, first + here, int64_t{0}));
    rows_ += from_.back();
  }
  std::vector<int32_t> firsts = {0}, next(counts.size()), order;
  for (int64_t e = 0; e < here; ++e) {
    int32_t row = firsts.back();
    for (int64_t d = 0; d < devices; ++d) {
      next[d * here + e] = row;
      row += counts[d * here + e];
    }
    firsts.push_back(row);
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    for (int32_t k = 0; k < counts[i]; ++k) order.push_back(next[i] + k);
  }
  order_N1_ = AllocateIds(ctx, rows_);
  begins_L1_ = AllocateIds(ctx, here + 1);
  SetHostIds(order_N1_, order);
  SetHostIds(begins_L1_, firsts);
}

Tensor ExpertExchange::Exchange(const LayerContext& ctx, const Tensor& rows,
                                const std::vector<int64_t>& to, const std::vector<int64_t>& from,
                                int64_t come) const {
  const int64_t columns = rows.dim(1);
  const auto numbers = [columns](std::vector<int64_t> of_rows) {
    for (int64_t& n : of_rows) n *= columns;
    return of_rows;
  };
  Tensor came =
      ctx.backend->arena().Allocate(rows.type(), {come, columns}, MemoryKind::kActivation);
  ctx.experts->Exchange(rows, numbers(to), came, numbers(from));
  return came;
}

Tensor ExpertExchange::GoUnsorted(const LayerContext& ctx, Tensor rows_RC) const {
  return Exchange(ctx, rows_RC, to_, from_, rows_);
}

Tensor ExpertExchange::ReturnUnsorted(const LayerContext& ctx, Tensor rows_NC,
                                      int64_t own_rows) const {
  return Exchange(ctx, rows_NC, from_, to_, own_rows);
}

Tensor ExpertExchange::Go(const LayerContext& ctx, Tensor rows_RC) const {
  const Tensor came_NC = GoUnsorted(ctx, std::move(rows_RC));
  Tensor sorted_NC = ctx.backend->Allocate({rows_, came_NC.dim(1)});
  if (rows_ > 0) ctx.backend->experts().Gather(RoutingOf(Tensor()), came_NC, sorted_NC);
  return sorted_NC;
}

Tensor ExpertExchange::Return(const LayerContext& ctx, Tensor rows_NC, int64_t own_rows) const {
  Tensor unsorted_NC = ctx.backend->Allocate({rows_, rows_NC.dim(1)});
  if (rows_ > 0) ctx.backend->experts().SumOfChoices(RoutingOf(Tensor()), rows_NC, unsorted_NC);
  rows_NC = Tensor();
  return ReturnUnsorted(ctx, std::move(unsorted_NC), own_rows);
}

}  // namespace pipelab
