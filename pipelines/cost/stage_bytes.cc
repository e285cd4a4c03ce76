#include "pipelines/cost/stage_bytes.h"

#include <cstddef>
#include <set>
#include <string>

namespace pipelab {

StageBytes BytesOf(const ModelGraph& graph, const StagePlan& plan, int64_t samples,
                   TokenSlice slice, TensorParallel split) {
  StageBytes bytes{plan, {}, {}, {}};
  bytes.costs.reserve(plan.layers.size());
  bytes.value.reserve(plan.values.size());
  for (size_t place = 0; place < plan.layers.size(); ++place) {
    const LayerSpec& layer = graph.layers[plan.layers[place]];
    LayerCosts costs = CostsOf(layer, samples, slice, split);
    if (!plan.splits[place]) {
      costs.backward_input_peak = costs.backward_peak;
      costs.kept_for_weight = costs.backward_weight_peak = Bytes(0);
    }
    bytes.costs.push_back(costs);
    bytes.data.push_back(DataBytes(layer, samples, slice, split.context));
  }
  for (const StagePlan::Value& v : plan.values) {
    bytes.value.push_back(CostsOf(graph.layers[v.layer], samples, slice, split).output);
  }
  return bytes;
}

int64_t NumValues(const ModelGraph& graph, const std::vector<int>& layers, TensorParallel split) {
  std::set<std::string> ties;
  int64_t n = 0;
  for (int i : layers) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      if (p.tie.empty() || ties.insert(p.tie).second) n += p.size_on(split);
    }
  }
  return n;
}

}  // namespace pipelab
