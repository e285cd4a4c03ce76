#include "models/graph/batch_norm_copies.h"

#include <algorithm>
#include <utility>

namespace pipelab {
namespace {

// Means and variances of one copy, or the two sums of a backward: as many numbers as there are
// running statistics.
Bytes RowOf(const LayerSpec& layer) {
  int64_t numbers = 0;
  for (const ParameterSpec& s : layer.statistics) numbers += s.size();
  return Bytes(4) * numbers;
}

}  // namespace

TensorCollectives StatisticsExchange(const LayerSpec& layer, int64_t copies) {
  TensorCollectives exchange;
  if (!HasBatchNorm(layer) || copies == 1) return exchange;
  exchange.forward = {{Collective::kAllGather, RowOf(layer) * copies}};
  exchange.backward_input = {{Collective::kAllReduce, RowOf(layer)}};
  return exchange;
}

// The order of allocations is in models/layers/micro_batch_norm.cc.
void AddExchange(int64_t copies, LayerSpec* layer) {
  if (!HasBatchNorm(*layer) || copies == 1) return;
  layer->costs = [of_rows = std::move(layer->costs), row = RowOf(*layer), copies](int64_t samples) {
    LayerCosts costs = of_rows(samples);
    // Beside what is kept, the own row and all, before the output comes; the sums beside the parts
    // of the parameters' gradients.
    costs.forward_peak = std::max(costs.forward_peak, costs.kept + row * (copies + 1));
    costs.backward_input_peak = std::max(costs.backward_input_peak, row * 2);
    costs.backward_peak = std::max(costs.backward_peak, row * 2);
    return costs;
  };
}

}  // namespace pipelab
