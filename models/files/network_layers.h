// One layer of a network file (network_json.h), from its JSON object and the shapes of its inputs.
//
//   PIPELAB_ASSIGN_OR_RETURN(NetworkLayer layer, ReadNetworkLayer({object, name, inputs}));
#ifndef PIPELAB_MODELS_FILES_NETWORK_LAYERS_H_
#define PIPELAB_MODELS_FILES_NETWORK_LAYERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "tools/base/json_object.h"

namespace pipelab {

// What a network's layer makes: rows of numbers, and where they are an image's pixels its size.
struct NetworkValue {
  std::vector<int64_t> shape;
  int64_t height = 0, width = 0;  // 0: no image
};

struct NetworkLayer {
  LayerSpec spec;
  int64_t height = 0, width = 0;  // of its output; 0: no image
};

struct NetworkLayerInput {
  int index = 0;     // of a layer in the graph
  std::string name;  // for messages
  NetworkValue value;
};

struct NetworkLayerSource {
  const JsonObject& object;
  std::string name, kind;
  std::vector<NetworkLayerInput> inputs;
};

// InvalidArgument: an unknown kind or key, a size that is missing, inputs that the kind cannot
// take.
absl::StatusOr<NetworkLayer> ReadNetworkLayer(const NetworkLayerSource& source);
// Whether the kind takes no layer where "inputs" is left out: it reads the data.
bool ReadsDataByItself(const JsonObject& object, const std::string& kind);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_NETWORK_LAYERS_H_
