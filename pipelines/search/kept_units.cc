#include "pipelines/search/kept_units.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "models/graph/layer_spec.h"
#include "models/graph/tensor_parallel.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/step/stage_cut.h"
#include "tools/base/status_macros.h"

namespace pipelab {

// Layers without experts do not notice who divides these.
double KeptUnits::KeptBy(const StepModel& model, int layer, const StepConfig& config) {
  StepConfig c = config;
  const LayerSpec& spec = model.model->graph.layers[layer];
  const bool experts = std::any_of(spec.parameters.begin(), spec.parameters.end(),
                                   [](const ParameterSpec& p) { return p.experts > 0; });
  if (!experts) {
    c.experts = 1;
    c.whole_experts = false;
  }
  const auto [known, added] =
      of_layer_.try_emplace(std::make_tuple(model.model, layer, LayerSizesOf(c)));
  if (added) {
    // Layers count 4 bytes a number.
    const int64_t width = model.cluster == nullptr ? 4 : BytesOf(model.type);
    const Bytes kept = CostsOf(spec, c.micro_batch_size, TokenSlice(), c.split()).kept;
    const int64_t bytes = kept.value() / 4 * width;
    known->second = static_cast<double>(bytes);
  }
  return known->second;
}

absl::StatusOr<const std::vector<double>*> KeptUnits::Of(const StepConfig& config) {
  const StepConfig c = WithoutTimesAlone(config);
  const bool selective = c.recompute == Recompute::kSelective;
  const auto key =
      std::make_tuple(LayerSizesOf(c), c.cut == CutRule::kLayers, selective, c.modules);
  const auto known = kept_.find(key);
  if (known != kept_.end()) return &known->second;
  PIPELAB_ASSIGN_OR_RETURN(const StepModel* model, cache_.ModelOf(config));
  const std::vector<int>& alike = cache_.AlikeOf(*model->model);
  const std::vector<int> unit_of_layer = UnitOfLayer(*model->model, c.cut);
  std::vector<double> of_layer(alike.size()), kept(unit_of_layer.back() + 1);
  for (int i = 0; i < static_cast<int>(alike.size()); ++i) {
    of_layer[i] = alike[i] < i ? of_layer[alike[i]] : KeptBy(*model, i, c);
    kept[unit_of_layer[i]] += of_layer[i];
  }
  return &kept_.emplace(key, std::move(kept)).first->second;
}

bool KeptUnits::AreChain(CutRule rule) {
  const auto known = chains_.find(rule);
  if (known != chains_.end()) return known->second;
  const GroupedModel& model = *cache_.model().model;
  const std::vector<int> unit_of_layer = UnitOfLayer(model, rule);
  std::vector<bool> fed(unit_of_layer.back() + 1);
  for (size_t i = 0; i < unit_of_layer.size(); ++i) {
    const LayerSpec& layer = model.graph.layers[i];
    for (const int input : layer.inputs) {
      const bool before = unit_of_layer[input] + 1 == unit_of_layer[i];
      if (before && !IsDetached(layer, input)) fed[unit_of_layer[i]] = true;
    }
  }
  const bool chain = std::all_of(fed.begin() + 1, fed.end(), [](bool f) { return f; });
  return chains_[rule] = chain;
}

}  // namespace pipelab
