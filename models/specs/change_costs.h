// A layer whose costs are others than its kind's, on one device and on each of a group.
//
//   ChangeCosts(&layer, [](int64_t samples, TensorParallel split, LayerCosts* costs) {
//     costs->kept -= ...;
//   });
//
// A change that takes a TokenSlice behind the samples is one of slices too, where the layer takes
// them; after any other the layer takes whole samples only.
#ifndef PIPELAB_MODELS_SPECS_CHANGE_COSTS_H_
#define PIPELAB_MODELS_SPECS_CHANGE_COSTS_H_

#include <cstdint>
#include <type_traits>

#include "glog/logging.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

template <typename Change, typename Changed>
inline constexpr bool kChangesSlices =
    std::is_invocable_v<Change, int64_t, TokenSlice, TensorParallel, Changed*>;

// What was set to compute with another width is not known then.
template <typename Change>
void ChangeCosts(LayerSpec* layer, const Change& change) {
  constexpr bool kSlices = kChangesSlices<Change, LayerCosts>;
  const bool takes_slices = layer->slice_costs != nullptr;
  layer->split.costs = [change, costs = layer->split.costs](int64_t samples, TokenSlice slice,
                                                            TensorParallel split) {
    LayerCosts changed = costs(samples, slice, split);
    if constexpr (kSlices) {
      change(samples, slice, split, &changed);
    } else {
      CHECK(slice.whole()) << "changed costs of token slices";
      change(samples, split, &changed);
    }
    return changed;
  };
  SetWholeCosts(layer);
  layer->set_costs = nullptr;
  if (!kSlices || !takes_slices) layer->slice_costs = nullptr;
}

// Likewise of the operations.
template <typename Change>
void ChangeOperations(LayerSpec* layer, const Change& change) {
  constexpr bool kSlices = kChangesSlices<Change, LayerOperations>;
  const bool takes_slices = layer->slice_costs != nullptr;
  layer->split.operations = [change, operations = layer->split.operations](
                                int64_t samples, TokenSlice slice, TensorParallel split) {
    LayerOperations changed = operations(samples, slice, split);
    if constexpr (kSlices) {
      change(samples, slice, split, &changed);
    } else {
      change(samples, split, &changed);
    }
    return changed;
  };
  SetWholeCosts(layer);
  if (!kSlices || !takes_slices) layer->slice_costs = nullptr;
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_CHANGE_COSTS_H_
