#include "models/files/layer_list_json.h"

#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/files/listed_split_json.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

// An example in messages.
template <typename Q>
constexpr const char* kExample = "\"8 MiB\"";
template <>
constexpr const char* kExample<Flops> = "\"12 Gflop\"";
template <>
constexpr const char* kExample<Nanoseconds> = "\"3 ms\"";

// "3 ms" of a sample, or {"fixed": "1 ms", "per_sample": "3 ms"}.
template <typename Q>
absl::StatusOr<PassCost<Q>> ReadCost(const JsonObject& parent, absl::string_view key) {
  PassCost<Q> cost;
  if (parent.HasString(key)) {
    PIPELAB_ASSIGN_OR_RETURN(cost.per_sample, parent.Quantity<Q>(key));
    return cost;
  }
  if (parent.Has(key) && !parent.HasObject(key)) {
    return parent.Error(key, "must be a number and a unit in quotes, such as ", kExample<Q>,
                        ", or an object of such with \"fixed\" and \"per_sample\"");
  }
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, parent.Object(key));
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"fixed", "per_sample"}));
  if (!object.Has("fixed") && !object.Has("per_sample")) {
    return parent.Error(key, "needs \"per_sample\" or \"fixed\"");
  }
  if (object.Has("fixed")) {
    PIPELAB_ASSIGN_OR_RETURN(cost.fixed, object.Quantity<Q>("fixed"));
  }
  if (object.Has("per_sample")) {
    PIPELAB_ASSIGN_OR_RETURN(cost.per_sample, object.Quantity<Q>("per_sample"));
  }
  return cost;
}

// Without parameters there is no weight part.
template <typename Q>
absl::StatusOr<PassCosts<Q>> ReadBackward(const JsonObject& object, bool has_parameters,
                                          PassCosts<Q> costs) {
  const bool parts = object.Has("backward_input") || object.Has("backward_weight");
  if (object.Has("backward")) {
    if (parts) return object.Error("backward", "is there beside its parts; give one of the two");
    PIPELAB_ASSIGN_OR_RETURN(const PassCost<Q> backward, ReadCost<Q>(object, "backward"));
    return SplitBackward(costs.forward, backward, has_parameters);
  }
  costs.backward_input = costs.forward;
  if (has_parameters) costs.backward_weight = costs.forward;
  if (object.Has("backward_input")) {
    PIPELAB_ASSIGN_OR_RETURN(costs.backward_input, ReadCost<Q>(object, "backward_input"));
  }
  if (object.Has("backward_weight")) {
    PIPELAB_ASSIGN_OR_RETURN(costs.backward_weight, ReadCost<Q>(object, "backward_weight"));
  }
  return costs;
}

// "3 ms" of a forward, or an object of passes.
template <typename Q>
absl::StatusOr<PassCosts<Q>> ReadCosts(const JsonObject& layer, absl::string_view key,
                                       bool has_parameters) {
  PassCosts<Q> costs;
  if (layer.HasString(key)) {
    PIPELAB_ASSIGN_OR_RETURN(costs.forward, ReadCost<Q>(layer, key));
    costs.backward_input = costs.forward;
    if (has_parameters) costs.backward_weight = costs.forward;
    return costs;
  }
  if (!layer.HasObject(key)) {
    return layer.Error(key, "must be a number and a unit in quotes, such as ", kExample<Q>,
                       ", or an object with \"forward\"");
  }
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject object, layer.Object(key));
  PIPELAB_RETURN_IF_ERROR(
      object.AllowKeys({"forward", "backward", "backward_input", "backward_weight"}));
  PIPELAB_ASSIGN_OR_RETURN(costs.forward, ReadCost<Q>(object, "forward"));
  return ReadBackward(object, has_parameters, costs);
}

absl::StatusOr<std::vector<std::string>> ReadNames(const JsonObject& object,
                                                   absl::string_view key) {
  std::vector<std::string> names;
  PIPELAB_ASSIGN_OR_RETURN(const json* list, object.List(key));
  for (const json& name : *list) {
    if (!name.is_string()) return object.Error(key, "must be a list of layers' names");
    names.push_back(name.get<std::string>());
  }
  return names;
}

absl::Status ReadBytes(const JsonObject& object, ListedLayer* layer) {
  if (object.Has("output")) {
    PIPELAB_ASSIGN_OR_RETURN(layer->output, object.Quantity<Bytes>("output"));
  }
  if (object.Has("kept")) {
    PIPELAB_ASSIGN_OR_RETURN(layer->kept, object.Quantity<Bytes>("kept"));
  }
  if (object.Has("keeps_inputs")) {
    PIPELAB_ASSIGN_OR_RETURN(layer->keeps_inputs, object.Bool("keeps_inputs"));
  }
  if (object.Has("workspace")) {
    PIPELAB_ASSIGN_OR_RETURN(layer->workspace, ReadCost<Bytes>(object, "workspace"));
  }
  return absl::OkStatus();
}

absl::StatusOr<OperationKind> ReadOperation(const JsonObject& object) {
  if (object.Has("time")) return object.Error("operation", "belongs to \"flops\", not \"time\"");
  PIPELAB_ASSIGN_OR_RETURN(const std::string name, object.String("operation"));
  absl::StatusOr<OperationKind> kind = FindOperationKind(name);
  if (!kind.ok()) return object.Error("operation", kind.status().message());
  if (*kind == OperationKind::kMeasured) {
    return object.Error("operation", "what was measured has \"time\" in place of \"flops\"");
  }
  if (*kind == OperationKind::kOptimizer) {
    return object.Error("operation", "optimizer steps follow from \"parameters\"");
  }
  return kind;
}

absl::StatusOr<ListedLayer> ReadLayer(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(
      object.AllowKeys({"name", "inputs", "flops", "operation", "time", "output", "kept",
                        "keeps_inputs", "workspace", "parameters", "tensor_parallel"}));
  ListedLayer layer;
  PIPELAB_ASSIGN_OR_RETURN(layer.name, object.String("name"));
  if (object.Has("inputs")) {
    PIPELAB_ASSIGN_OR_RETURN(layer.inputs, ReadNames(object, "inputs"));
  }
  if (object.Has("parameters")) {
    PIPELAB_ASSIGN_OR_RETURN(layer.parameters, object.Integer("parameters", 0, kMostParameters));
  }
  const bool has_parameters = layer.parameters > 0;
  if (object.Has("flops") && object.Has("time")) {
    return object.Error("time", "is there beside \"flops\"; give one of the two");
  }
  if (object.Has("time")) {
    PIPELAB_ASSIGN_OR_RETURN(layer.costs, ReadCosts<Nanoseconds>(object, "time", has_parameters));
  } else if (object.Has("flops")) {
    PIPELAB_ASSIGN_OR_RETURN(layer.costs, ReadCosts<Flops>(object, "flops", has_parameters));
  } else {
    return object.Error("flops", "missing, and so is \"time\": layer \"", layer.name,
                        "\" has no cost");
  }
  if (object.Has("operation")) {
    PIPELAB_ASSIGN_OR_RETURN(layer.operation, ReadOperation(object));
  }
  PIPELAB_RETURN_IF_ERROR(ReadBytes(object, &layer));
  if (object.Has("tensor_parallel")) {
    PIPELAB_ASSIGN_OR_RETURN(layer.tensor_parallel, ReadListedSplit(object, layer));
  }
  return layer;
}

std::string TextOf(Bytes b) { return absl::StrCat(b.value(), " B"); }
std::string TextOf(Nanoseconds t) { return absl::StrCat(t.value(), " ns"); }
std::string TextOf(Flops f) { return absl::StrCat(json(f.value()).dump(), " flop"); }

template <typename Q>
json Written(const PassCost<Q>& cost) {
  if (cost.fixed == Q()) return TextOf(cost.per_sample);
  return {{"fixed", TextOf(cost.fixed)}, {"per_sample", TextOf(cost.per_sample)}};
}

json WrittenLayer(const ListedLayer& layer) {
  json object = {{"name", layer.name}};
  if (!layer.inputs.empty()) object["inputs"] = layer.inputs;
  absl::visit(
      [&](const auto& costs) {
        using Costs = std::decay_t<decltype(costs)>;
        object[std::is_same<Costs, PassCosts<Flops>>::value ? "flops" : "time"] = {
            {"forward", Written(costs.forward)},
            {"backward_input", Written(costs.backward_input)},
            {"backward_weight", Written(costs.backward_weight)}};
      },
      layer.costs);
  if (layer.operation != OperationKind::kMatmul) {
    object["operation"] = OperationKindName(layer.operation);
  }
  if (layer.output.has_value()) object["output"] = TextOf(*layer.output);
  if (layer.kept != Bytes(0)) object["kept"] = TextOf(layer.kept);
  if (!layer.keeps_inputs) object["keeps_inputs"] = false;
  if (layer.workspace.fixed + layer.workspace.per_sample != Bytes(0)) {
    object["workspace"] = Written(layer.workspace);
  }
  if (layer.parameters != 0) object["parameters"] = layer.parameters;
  if (layer.tensor_parallel.has_value()) {
    object["tensor_parallel"] = WrittenListedSplit(*layer.tensor_parallel);
  }
  return object;
}

}  // namespace

absl::StatusOr<LayerList> ReadLayerList(const json& root, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PIPELAB_RETURN_IF_ERROR(
      file.AllowKeys({"name", "source", "bytes_per_number", "layers", "outputs"}));
  LayerList list;
  PIPELAB_ASSIGN_OR_RETURN(list.name, file.String("name"));
  if (file.Has("source")) {
    PIPELAB_ASSIGN_OR_RETURN(list.source, file.String("source"));
  }
  if (file.Has("bytes_per_number")) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t bytes, file.Integer("bytes_per_number", 1, 4));
    list.bytes_per_number = static_cast<int>(bytes);
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> layers, file.Objects("layers"));
  for (const JsonObject& object : layers) {
    PIPELAB_ASSIGN_OR_RETURN(ListedLayer layer, ReadLayer(object));
    list.layers.push_back(std::move(layer));
  }
  if (file.Has("outputs")) {
    PIPELAB_ASSIGN_OR_RETURN(list.outputs, ReadNames(file, "outputs"));
  }
  return list;
}

absl::StatusOr<LayerList> ParseLayerList(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const json root, ParseJson(text, what));
  return ReadLayerList(root, what);
}

std::string LayerListToJson(const LayerList& list) {
  json layers = json::array();
  for (const ListedLayer& layer : list.layers) layers.push_back(WrittenLayer(layer));
  json root = {{"name", list.name}, {"layers", std::move(layers)}};
  if (list.bytes_per_number != 4) root["bytes_per_number"] = list.bytes_per_number;
  if (!list.source.empty()) root["source"] = list.source;
  if (!list.outputs.empty()) root["outputs"] = list.outputs;
  return DumpJson(root);
}

}  // namespace pipelab
