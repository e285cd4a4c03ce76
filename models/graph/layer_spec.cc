#include "models/graph/layer_spec.h"

#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "tools/base/nearest.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status Error(const LayerSpec& layer, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("layer \"", layer.name, "\": ", what));
}

std::string StartOf(const ParameterSpec& p) {
  const char* kind = p.init == InitKind::kZeros  ? "zeros"
                     : p.init == InitKind::kOnes ? "ones"
                                                 : "normal";
  return absl::StrCat("[", absl::StrJoin(p.shape, ", "), "] ", kind,
                      p.init == InitKind::kNormal ? absl::StrCat(" ", p.stddev) : "");
}

// Parameters seen so far, while Validate walks the layers.
struct Seen {
  absl::flat_hash_set<absl::string_view> names;
  std::map<std::string, const ParameterSpec*> ties;  // first of each
};

absl::Status CheckParameter(const LayerSpec& layer, const ParameterSpec& p, Seen* seen) {
  if (p.name.empty()) return Error(layer, "a parameter without a name");
  if (!seen->names.insert(p.name).second) {
    return Error(layer, absl::StrCat("parameter \"", p.name, "\" exists already"));
  }
  for (int64_t d : p.shape) {
    if (d < 1)
      return Error(layer, absl::StrCat("parameter \"", p.name, "\" has a dimension of ", d));
  }
  if (p.shape.empty()) return Error(layer, absl::StrCat("parameter \"", p.name, "\" has no shape"));
  if (p.tie.empty()) return absl::OkStatus();
  const ParameterSpec* first = seen->ties.emplace(p.tie, &p).first->second;
  if (first->shape != p.shape || first->init != p.init || first->stddev != p.stddev) {
    return Error(layer, absl::StrCat("parameter \"", p.name, "\" (", StartOf(p), ") is tied to \"",
                                     first->name, "\" (", StartOf(*first),
                                     "): they must agree in shape and start"));
  }
  return absl::OkStatus();
}

absl::Status CheckInputs(const ModelGraph& graph, int index) {
  const LayerSpec& layer = graph.layers[index];
  if (layer.inputs.size() != layer.input_shapes.size()) {
    return Error(layer, absl::StrCat("has ", layer.inputs.size(), " inputs, but the shapes of ",
                                     layer.input_shapes.size()));
  }
  std::set<int> taken;  // of several
  for (size_t k = 0; k < layer.inputs.size(); ++k) {
    const int input = layer.inputs[k];
    if (input < 0 || input >= index) {
      return Error(layer, absl::StrCat("is number ", index, " and takes input ", input,
                                       ": inputs are earlier layers"));
    }
    if (layer.inputs.size() > 1 && !taken.insert(input).second) {
      return Error(layer, absl::StrCat("takes input \"", graph.layers[input].name, "\" twice"));
    }
    const std::vector<int64_t>& shape = graph.layers[input].output_shape;
    if (shape.empty()) {
      return Error(layer, absl::StrCat("takes input \"", graph.layers[input].name,
                                       "\", which has no output"));
    }
    if (shape != layer.input_shapes[k]) {
      return Error(layer,
                   absl::StrCat("takes samples of [", absl::StrJoin(layer.input_shapes[k], ", "),
                                "], and \"", graph.layers[input].name, "\" makes [",
                                absl::StrJoin(shape, ", "), "]"));
    }
  }
  return absl::OkStatus();
}

// Every output is used, and brings a gradient back, but for losses, which have none.
absl::Status CheckGradients(const ModelGraph& graph) {
  const std::vector<std::vector<int>> consumers = Consumers(graph);
  const std::vector<std::vector<int>> sources = GradientSources(graph);
  const LayerSpec* loss = nullptr;
  bool detaches = false;
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    const LayerSpec& layer = graph.layers[i];
    detaches |= !layer.detached.empty();
    std::set<int> taken;
    if (!layer.detached.empty()) taken.insert(layer.inputs.begin(), layer.inputs.end());
    for (int input : layer.detached) {
      if (taken.count(input) > 0) continue;
      return Error(layer,
                   absl::StrCat("is detached from layer ", input, ", which it does not take"));
    }
    if (!layer.output_shape.empty()) {
      if (!sources[i].empty()) continue;
      return Error(layer,
                   consumers[i].empty()
                       ? "nothing takes its output, and it is not a loss (a layer without one)"
                       : "gets no gradient: all that take its output are detached from it");
    }
    if (loss != nullptr && !detaches && loss->priced_alone.empty()) {
      return Error(layer, absl::StrCat("is a loss, and so is \"", loss->name,
                                       "\": a model has one, unless its blocks learn locally"));
    }
    loss = &layer;
  }
  return absl::OkStatus();
}

absl::Status CheckLayer(const ModelGraph& graph, int index, Seen* seen) {
  const LayerSpec& layer = graph.layers[index];
  if (layer.kind.empty()) return Error(layer, "has no kind");
  if (!layer.costs) return Error(layer, "has no costs");
  if (!layer.operations) return Error(layer, "has no operations");
  PIPELAB_RETURN_IF_ERROR(CheckInputs(graph, index));
  for (const ParameterSpec& p : layer.parameters) {
    PIPELAB_RETURN_IF_ERROR(CheckParameter(layer, p, seen));
  }
  for (const ParameterSpec& p : layer.statistics) {
    PIPELAB_RETURN_IF_ERROR(CheckParameter(layer, p, seen));
    if (!p.tie.empty()) return Error(layer, absl::StrCat("statistics \"", p.name, "\" are tied"));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t ParameterSpec::size() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
}

int64_t ModelGraph::num_parameters() const {
  int64_t n = 0;
  std::set<std::string> ties;
  for (const LayerSpec& layer : layers) {
    for (const ParameterSpec& p : layer.parameters) {
      if (p.tie.empty() || ties.insert(p.tie).second) n += p.size();
    }
  }
  return n;
}

absl::Status Validate(const ModelGraph& graph) {
  if (graph.layers.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("model \"", graph.name, "\" has no layers"));
  }
  Seen seen;
  absl::flat_hash_set<absl::string_view> layer_names;
  for (int i = 0; i < static_cast<int>(graph.layers.size()); ++i) {
    const std::string& name = graph.layers[i].name;
    if (name.empty()) return absl::InvalidArgumentError(absl::StrCat("layer ", i, " has no name"));
    if (!layer_names.insert(name).second)
      return Error(graph.layers[i], "two layers have this name");
    PIPELAB_RETURN_IF_ERROR(CheckLayer(graph, i, &seen));
  }
  return CheckGradients(graph);
}

std::vector<std::vector<int>> Consumers(const ModelGraph& graph) {
  std::vector<std::vector<int>> consumers(graph.layers.size());
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    for (int input : graph.layers[i].inputs) consumers[input].push_back(static_cast<int>(i));
  }
  return consumers;
}

std::vector<std::vector<int>> GradientSources(const ModelGraph& graph) {
  std::vector<std::vector<int>> sources(graph.layers.size());
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    const std::set<int> detached(graph.layers[i].detached.begin(), graph.layers[i].detached.end());
    for (int input : graph.layers[i].inputs) {
      if (detached.count(input) == 0) sources[input].push_back(static_cast<int>(i));
    }
  }
  return sources;
}

int LossLayer(const ModelGraph& graph) {
  for (size_t i = graph.layers.size(); i-- > 0;) {
    if (graph.layers[i].output_shape.empty()) return static_cast<int>(i);
  }
  LOG(FATAL) << "model \"" << graph.name << "\" has no loss: Validate says so";
}

double Attribute(const LayerSpec& layer, absl::string_view name) {
  const auto it = layer.attributes.find(std::string(name));
  CHECK(it != layer.attributes.end()) << "layer \"" << layer.name << "\" (" << layer.kind
                                      << ") has no attribute \"" << name << "\"";
  return it->second;
}

int64_t TokensOf(const LayerSpec& layer) {
  const std::vector<int64_t>& shape =
      layer.output_shape.empty() ? layer.input_shapes[0] : layer.output_shape;
  return shape[0] * layer.rows.parts * layer.context.parts;
}

// Rows that are computed by themselves cost the same wherever they are.
static TokenSlice RowsOfContext(const LayerSpec& layer, TensorParallel split) {
  return {0, TokensOf(layer) / split.context};
}

absl::Status CheckTakesSlices(const ModelGraph& graph) {
  for (const LayerSpec& layer : graph.layers) {
    if (layer.slice_costs) continue;
    return Error(layer, absl::StrCat("a ", layer.kind,
                                     " takes whole samples and cannot work on token slices"));
  }
  return absl::OkStatus();
}

LayerCosts CostsOf(const LayerSpec& layer, int64_t samples, TokenSlice slice,
                   TensorParallel split) {
  if (split.divides() && !layer.split.empty()) return layer.split.costs(samples, slice, split);
  if (split.context > 1) slice = RowsOfContext(layer, split);
  if (slice.whole()) return layer.costs(samples);
  CHECK(layer.slice_costs) << "layer \"" << layer.name << "\" (" << layer.kind
                           << ") takes whole samples, not slices of them";
  return layer.slice_costs(samples, slice);
}

TensorShare ShareOf(const LayerSpec& layer, int64_t samples, TokenSlice slice,
                    TensorParallel split) {
  TensorShare share;
  if (split.divides() && !layer.split.empty()) {
    static_cast<TensorCollectives&>(share) = layer.split.collectives(samples, slice, split);
    share.costs = layer.split.costs(samples, slice, split);
    share.operations = layer.split.operations(samples, slice, split);
    if (split.context > 1 && layer.split.context_collectives) {
      share.context = layer.split.context_collectives(samples, slice, split);
    }
  } else {
    if (split.context > 1) slice = RowsOfContext(layer, split);
    share.costs = CostsOf(layer, samples, slice);
    share.operations = layer.operations(samples, slice);
  }
  if (slice.exchanges() && layer.split.context_collectives) {
    share.context = layer.split.context_collectives(samples, slice, split);
  }
  return share;
}

void SetWholeCosts(LayerSpec* layer) {
  layer->costs = [costs = layer->split.costs](int64_t samples) {
    return costs(samples, TokenSlice(), TensorParallel());
  };
  layer->slice_costs = [costs = layer->split.costs](int64_t samples, TokenSlice slice) {
    return costs(samples, slice, TensorParallel());
  };
  layer->operations = [operations = layer->split.operations](int64_t samples, TokenSlice slice) {
    return operations(samples, slice, TensorParallel());
  };
}

void SetCosts(LayerSpec* layer, std::function<void(NumberWidth width, LayerSpec* layer)> set) {
  set(NumberWidth(), layer);
  layer->set_costs = std::move(set);
}

absl::StatusOr<ModelGraph> WithNumberWidth(ModelGraph graph, NumberWidth width,
                                           absl::string_view option) {
  if (width.bytes == graph.width.bytes) return graph;
  for (LayerSpec& layer : graph.layers) {
    if (!layer.set_costs) {
      return absl::InvalidArgumentError(absl::StrCat(option, ": layer \"", layer.name, "\" (",
                                                     layer.kind,
                                                     ") computes with float32 alone; take fp32"));
    }
    const auto set = layer.set_costs;
    set(width, &layer);
  }
  graph.width = width;
  return graph;
}

// The degree nearest to the asked one that divides every layer; the smaller of two as near.
int64_t NearestDegree(const ModelGraph& graph, TensorParallel split) {
  int64_t common = 0;
  for (const LayerSpec& layer : graph.layers) {
    for (const TensorDimension& d : layer.split.dimensions) {
      if (split.sequence || !d.sequence) common = std::gcd(common, d.size);
    }
  }
  return NearestDivisor(split.degree, common);
}

absl::Status CheckTensorParallel(const ModelGraph& graph, TensorParallel split,
                                 absl::string_view degree_option,
                                 absl::string_view sequence_option) {
  const std::string degree = absl::StrCat(degree_option, "=", split.degree);
  if (split.degree < 1) {
    return absl::InvalidArgumentError(absl::StrCat(degree, ": must be at least 1"));
  }
  if (split.degree == 1) return absl::OkStatus();
  for (const LayerSpec& layer : graph.layers) {
    if (layer.split.empty() && !layer.split.whole) {
      return absl::InvalidArgumentError(absl::StrCat(
          degree, ": layer \"", layer.name, "\"",
          layer.kind == kProfiled ? " does not say how it splits (\"tensor_parallel\" in its file)"
                                  : absl::StrCat(" (", layer.kind, ") cannot be split"),
          "; ", degree_option, " must be 1"));
    }
  }
  for (const LayerSpec& layer : graph.layers) {
    const std::vector<TensorDimension>& dimensions = layer.split.dimensions;
    if (split.sequence && std::none_of(dimensions.begin(), dimensions.end(),
                                       [](const TensorDimension& d) { return d.sequence; })) {
      return absl::InvalidArgumentError(absl::StrCat(sequence_option, ": layer \"", layer.name,
                                                     "\" (", layer.kind,
                                                     ") cannot be split by tokens"));
    }
    for (const TensorDimension& d : dimensions) {
      if (d.size % split.degree == 0 || (d.sequence && !split.sequence)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(d.sequence ? absl::StrCat(sequence_option, ": ") : "", degree,
                       d.sequence ? " must divide the " : ": must divide the ", d.size, " ", d.name,
                       " of layer \"", layer.name, "\"; the nearest that divides every layer is ",
                       NearestDegree(graph, split)));
    }
  }
  return absl::OkStatus();
}

Bytes DataBytes(const LayerSpec& layer, int64_t samples, TokenSlice slice, int64_t context) {
  int64_t numbers = 0;
  for (const DataField& field : layer.data) {
    const int64_t parts = context > 1 && field.shape[0] == TokensOf(layer) ? context : 1;
    numbers += samples * slice.CountOf(field.shape[0]) / parts * field.row_size();
  }
  return Bytes(4) * numbers;
}

const std::string& ValueName(const ParameterSpec& parameter) {
  return parameter.tie.empty() ? parameter.name : parameter.tie;
}

}  // namespace pipelab
