#include "models/files/network_json.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "models/files/network_layers.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

class NetworkReader {
 public:
  absl::Status Add(const JsonObject& object) {
    PIPELAB_ASSIGN_OR_RETURN(std::string name, object.String("name"));
    PIPELAB_ASSIGN_OR_RETURN(std::string kind, object.String("kind"));
    if (number_.count(name) > 0) return object.Error("name", "\"", name, "\" is there twice");
    NetworkLayerSource source{object, name, std::move(kind), {}};
    PIPELAB_RETURN_IF_ERROR(FindInputs(&source));
    PIPELAB_ASSIGN_OR_RETURN(NetworkLayer layer, ReadNetworkLayer(source));
    number_[std::move(name)] = static_cast<int>(graph.layers.size());
    values_.push_back({layer.spec.output_shape, layer.height, layer.width});
    graph.layers.push_back(std::move(layer.spec));
    return absl::OkStatus();
  }

  ModelGraph graph;

 private:
  absl::Status FindInputs(NetworkLayerSource* source) {
    const JsonObject& object = source->object;
    const auto add = [&](int i) {
      source->inputs.push_back({i, graph.layers[i].name, values_[i]});
    };
    if (!object.Has("inputs")) {
      if (!graph.layers.empty() && !ReadsDataByItself(object, source->kind)) {
        add(static_cast<int>(graph.layers.size()) - 1);
      }
    } else {
      PIPELAB_ASSIGN_OR_RETURN(const json* names, object.List("inputs"));
      for (const json& name : *names) {
        if (!name.is_string()) return object.Error("inputs", "must be a list of layers' names");
        const auto it = number_.find(name.get<std::string>());
        if (it == number_.end()) {
          return object.Error("inputs", name.dump(), ": no earlier layer has this name");
        }
        add(it->second);
      }
    }
    for (const NetworkLayerInput& input : source->inputs) {
      if (!input.value.shape.empty()) continue;
      return object.Error("inputs", "layer \"", input.name, "\" is a loss and gives nothing");
    }
    return absl::OkStatus();
  }

  absl::flat_hash_map<std::string, int> number_;
  std::vector<NetworkValue> values_;  // [layer]
};

}  // namespace

bool IsNetwork(const json& root) {
  const auto layers = root.is_object() ? root.find("layers") : root.end();
  return layers != root.end() && layers->is_array() &&
         std::any_of(layers->begin(), layers->end(),
                     [](const json& layer) { return layer.is_object() && layer.contains("kind"); });
}

absl::StatusOr<ModelGraph> ReadNetwork(const json& root, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PIPELAB_RETURN_IF_ERROR(file.AllowKeys({"name", "source", "layers"}));
  NetworkReader reader;
  PIPELAB_ASSIGN_OR_RETURN(reader.graph.name, file.String("name"));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> layers, file.Objects("layers"));
  reader.graph.layers.reserve(layers.size());
  for (const JsonObject& layer : layers) PIPELAB_RETURN_IF_ERROR(reader.Add(layer));
  const absl::Status valid = Validate(reader.graph);
  if (valid.ok()) return std::move(reader.graph);
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", valid.message()));
}

absl::StatusOr<ModelGraph> ParseNetwork(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const json root, ParseJson(text, what));
  return ReadNetwork(root, what);
}

}  // namespace pipelab
