#include "pipelines/cost/stage_costs.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/cost/stage_ties.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Height of the memory above its level at the start of an action, and the highest it was.
struct Walk {
  Bytes level, peak;

  void Reach(Bytes above) { peak = std::max(peak, level + above); }
};

// What the walk needs of one layer.
struct LayerBytes {
  LayerCosts costs;
  Bytes input;  // 0 for a layer that reads the data
  Bytes data;   // what it reads of the data set, while a pass runs
};

std::vector<LayerBytes> BytesOf(const ModelGraph& graph, int begin, int end, int64_t samples) {
  std::vector<LayerBytes> layers;
  for (int i = begin; i < end; ++i) {
    LayerBytes layer;
    layer.costs = graph.layers[i].costs(samples);
    layer.input = i == 0 ? Bytes(0) : graph.layers[i - 1].costs(samples).output;
    layer.data = DataBytes(graph.layers[i], samples);
    layers.push_back(layer);
  }
  return layers;
}

Bytes ForwardPeak(const std::vector<LayerBytes>& layers) {
  Walk walk;
  for (const LayerBytes& l : layers) {
    walk.Reach(l.data + l.costs.forward_peak);
    walk.level += l.costs.kept + l.costs.output;
  }
  return walk.peak;
}

// Nothing stays but the stage's input; a layer's own input goes when its output is there.
Bytes ForwardDropPeak(const std::vector<LayerBytes>& layers) {
  Walk walk;
  for (const LayerBytes& l : layers) {
    walk.Reach(l.data + l.costs.forward_peak);
    walk.level = l.costs.output;
  }
  return walk.peak;
}

// Each layer gives up its input, what it kept, and the gradient of its output, and leaves the
// gradient of its input; between input and weight part it holds kept_for_weight as well.
Bytes BackwardPeak(const std::vector<LayerBytes>& layers, bool fused) {
  Walk walk;
  for (auto l = layers.rbegin(); l != layers.rend(); ++l) {
    walk.Reach(l->data + (fused ? l->costs.backward_peak : l->costs.backward_input_peak));
    walk.level -= l->costs.output + l->costs.kept;  // the input goes, its gradient comes
    if (!fused) walk.level += l->costs.kept_for_weight + l->input;
  }
  return walk.peak;
}

Bytes BackwardWeightPeak(const std::vector<LayerBytes>& layers) {
  Walk walk;
  for (auto l = layers.rbegin(); l != layers.rend(); ++l) {
    walk.Reach(l->data + l->costs.backward_weight_peak);
    walk.level -= l->costs.kept_for_weight + l->input;
  }
  return walk.peak;
}

// Values (tied ones once), gradients (one a use), two moments of Adam.
Bytes StateBytes(const ModelGraph& graph, int begin, int end) {
  std::set<std::string> values;
  Bytes state;
  for (int i = begin; i < end; ++i) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      const Bytes size = Bytes(4) * p.size();
      state += size;
      if (values.insert(ValueName(p)).second) state += size * 3;
    }
  }
  return state;
}

// Gradients of the values that only these layers hold: what copies of the stage sum. Values of a
// tie with other stages are summed with those.
Bytes OwnGradientBytes(const ModelGraph& graph, int begin, int end) {
  std::set<std::string> elsewhere, values;
  for (int i = 0; i < static_cast<int>(graph.layers.size()); ++i) {
    if (i >= begin && i < end) continue;
    for (const ParameterSpec& p : graph.layers[i].parameters) elsewhere.insert(p.tie);
  }
  Bytes bytes;
  for (int i = begin; i < end; ++i) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      if (!p.tie.empty() && elsewhere.count(p.tie) > 0) continue;
      if (values.insert(ValueName(p)).second) bytes += Bytes(4) * p.size();
    }
  }
  return bytes;
}

int64_t NumValues(const ModelGraph& graph, int begin, int end) {
  std::set<std::string> values;
  int64_t n = 0;
  for (int i = begin; i < end; ++i) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      if (values.insert(ValueName(p)).second) n += p.size();
    }
  }
  return n;
}

Nanoseconds TimeOf(Flops flops, FlopsPerSecond rate) {
  return Nanoseconds(std::llround(flops.value() / rate.value() * 1e9));
}

absl::Status CheckPartition(const ModelGraph& graph, absl::Span<const int> first_layers) {
  const int layers = static_cast<int>(graph.layers.size());
  if (first_layers.empty() || first_layers[0] != 0) {
    return absl::InvalidArgumentError("a partition begins with layer 0");
  }
  for (size_t s = 0; s < first_layers.size(); ++s) {
    const int end = s + 1 < first_layers.size() ? first_layers[s + 1] : layers;
    if (first_layers[s] >= end) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage ", s, " has no layers: it begins with layer ", first_layers[s],
                       ", the next begins with ", end, " of ", layers));
    }
  }
  for (int i = 0; i < layers; ++i) {
    if (graph.layers[i].inputs != (i == 0 ? std::vector<int>{} : std::vector<int>{i - 1})) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer \"", graph.layers[i].name, "\": stage costs take a chain of layers"));
    }
  }
  return absl::OkStatus();
}

StageCost CostOf(const ModelGraph& graph, LayerRange range, int64_t samples,
                 const StageCostOptions& options) {
  Flops forward, backward_input, backward_weight;
  for (int i = range.begin; i < range.end; ++i) {
    const LayerCosts costs = graph.layers[i].costs(samples);
    forward += costs.forward;
    backward_input += costs.backward_input;
    backward_weight += costs.backward_weight;
  }
  StageCost cost;
  cost.forward = TimeOf(forward, options.rate);
  cost.backward_input = TimeOf(backward_input, options.rate);
  cost.backward_weight = TimeOf(backward_weight, options.rate);
  cost.recompute = cost.forward;
  const double values = static_cast<double>(NumValues(graph, range.begin, range.end));
  cost.step = TimeOf(Flops(values * options.step_flops_per_parameter), options.rate);
  cost.memory = ComputeStageMemory(graph, range.begin, range.end, samples);
  return cost;
}

}  // namespace

StageMemory ComputeStageMemory(const ModelGraph& graph, int begin, int end, int64_t samples) {
  const std::vector<LayerBytes> layers = BytesOf(graph, begin, end, samples);
  StageMemory memory;
  for (size_t i = 0; i < layers.size(); ++i) {
    memory.kept += layers[i].costs.kept;
    if (i > 0) memory.kept += layers[i].input;
    memory.kept_for_weight += layers[i].costs.kept_for_weight + layers[i].input;
  }
  memory.forward_peak = ForwardPeak(layers);
  memory.forward_drop_peak = ForwardDropPeak(layers);
  memory.recompute_peak =
      memory.forward_peak;  // the same passes; the output is thrown away at the end
  memory.backward_peak = BackwardPeak(layers, /*fused=*/true);
  memory.backward_input_peak = BackwardPeak(layers, /*fused=*/false);
  memory.backward_weight_peak = BackwardWeightPeak(layers);
  memory.state = StateBytes(graph, begin, end);
  memory.weights = Bytes(4) * NumValues(graph, begin, end);
  memory.gradients = OwnGradientBytes(graph, begin, end);
  return memory;
}

absl::StatusOr<CostTable> ComputeStageCosts(const ModelGraph& graph,
                                            absl::Span<const int> first_layers,
                                            int64_t micro_batch_samples,
                                            const StageCostOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckPartition(graph, first_layers));
  if (micro_batch_samples < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("micro-batches of ", micro_batch_samples, " samples"));
  }
  if (!(options.rate.value() > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a rate of ", options.rate.value(), " flop/s: must be above 0"));
  }
  CostTable table;
  for (int s = 0; s < static_cast<int>(first_layers.size()); ++s) {
    const LayerRange range = StageLayers(graph, first_layers, s);
    table.stages.push_back(CostOf(graph, range, micro_batch_samples, options));
    if (range.end < static_cast<int>(graph.layers.size())) {
      table.edge_bytes.push_back(graph.layers[range.end - 1].costs(micro_batch_samples).output);
    }
  }
  for (const LayerSpec& layer : graph.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      if (!p.tie.empty()) table.tie_bytes[p.tie] = Bytes(4) * p.size();
    }
  }
  return table;
}

}  // namespace pipelab
