// From a layer's specification to the layer that runs.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<Layer> layer, MakeLayer(graph.layers[1]));
//
// An explicit list: a new kind is a line in factory.cc.
#ifndef PIPELAB_MODELS_LAYERS_FACTORY_H_
#define PIPELAB_MODELS_LAYERS_FACTORY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "models/layers/layer.h"

namespace pipelab {

// InvalidArgument names a kind that is not in the list, and the list.
absl::StatusOr<std::unique_ptr<Layer>> MakeLayer(const LayerSpec& spec);

// The list.
std::vector<std::string> LayerKinds();

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_FACTORY_H_
