// A layer whose costs are others than its kind's, on one device and on each of a group.
//
//   ChangeCosts(&layer, [](int64_t samples, TensorParallel split, LayerCosts* costs) {
//     costs->kept -= ...;
//   });
#ifndef PIPELAB_MODELS_SPECS_CHANGE_COSTS_H_
#define PIPELAB_MODELS_SPECS_CHANGE_COSTS_H_

#include <cstdint>

#include "glog/logging.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

// Of whole samples; what was set to compute with another width, or slices, is not known then.
template <typename Change>
void ChangeCosts(LayerSpec* layer, const Change& change) {
  layer->split.costs = [change, costs = layer->split.costs](int64_t samples, TokenSlice slice,
                                                            TensorParallel split) {
    CHECK(slice.whole()) << "changed costs of token slices";
    LayerCosts changed = costs(samples, slice, split);
    change(samples, split, &changed);
    return changed;
  };
  SetWholeCosts(layer);
  layer->set_costs = nullptr;
  layer->slice_costs = nullptr;
}

// Likewise of the operations.
template <typename Change>
void ChangeOperations(LayerSpec* layer, const Change& change) {
  layer->split.operations = [change, operations = layer->split.operations](
                                int64_t samples, TokenSlice slice, TensorParallel split) {
    LayerOperations changed = operations(samples, slice, split);
    change(samples, split, &changed);
    return changed;
  };
  SetWholeCosts(layer);
  layer->slice_costs = nullptr;
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_CHANGE_COSTS_H_
