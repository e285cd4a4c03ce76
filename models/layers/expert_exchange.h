// Rows of tokens on their way to the devices that have their experts, and back.
//
//   Tensor counts_E = ExpertExchange::MeetCounts(ctx, routing.begins_G1);   // the backward's too
//   const ExpertExchange exchange(ctx, routing.begins_G1, counts_E);
//   Tensor came_NC = exchange.Go(ctx, std::move(rows_RC));     // by expert, then as devices follow
//   const Routing here = exchange.RoutingOf(exchange.GoUnsorted(ctx, std::move(weights_R1)));
//   ctx.backend->experts().Product(here, came_NC, w_GCF, h_NF);
//   rows_RC = exchange.Return(ctx, std::move(y_NC), r);        // where they were
//
// R rows as ExpertKernels::Gather makes them, of which those of dropped choices stay here; N rows
// come. Of one expert they are in the order of devices and, of each, of its tokens. Devices are
// ctx.experts, of which each has as many experts, those of the first one first. All of them call
// all of this in one order. An error stays with them (tensor_peers.h); then no rows come.
#ifndef PIPELAB_MODELS_LAYERS_EXPERT_EXCHANGE_H_
#define PIPELAB_MODELS_LAYERS_EXPERT_EXCHANGE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/expert_kernels.h"
#include "kernels/tensor/tensor.h"
#include "models/layers/layer.h"

namespace pipelab {

class ExpertExchange {
 public:
  // [device, expert here] how many rows come; int32.
  static Tensor MeetCounts(const LayerContext& ctx, const Tensor& begins_G1);

  ExpertExchange(const LayerContext& ctx, const Tensor& begins_G1, const Tensor& counts_E);

  int64_t rows() const { return rows_; }  // N
  // The routing of the rows that came, whose weights are in the order of devices.
  Routing RoutingOf(Tensor weights_N1) const {
    return {std::move(weights_N1), Tensor(), order_N1_, begins_L1_};
  }

  Tensor Go(const LayerContext& ctx, Tensor rows_RC) const;
  Tensor Return(const LayerContext& ctx, Tensor rows_NC, int64_t own_rows) const;
  // Both without another order: rows as devices follow.
  Tensor GoUnsorted(const LayerContext& ctx, Tensor rows_RC) const;
  Tensor ReturnUnsorted(const LayerContext& ctx, Tensor rows_NC, int64_t own_rows) const;

 private:
  Tensor Exchange(const LayerContext& ctx, const Tensor& rows, const std::vector<int64_t>& to,
                  const std::vector<int64_t>& from, int64_t come) const;

  std::vector<int64_t> to_, from_;  // [device] rows of the way there
  int64_t rows_ = 0;                // that come
  Tensor order_N1_, begins_L1_;     // the place of each row among those of experts; int32
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_EXPERT_EXCHANGE_H_
