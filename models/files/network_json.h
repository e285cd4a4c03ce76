// Networks of one's own that train: a JSON file that lists layers by kind. What layer_list_json.h
// is for costs, this is for layers that run (models/layers/factory.h).
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, ParseNetwork(text, "--model=net.json"));
//
//   {"name": "net", "layers": [
//     {"name": "in", "kind": "data_input", "field": "features", "shape": [8]},
//     {"name": "hidden", "kind": "dense", "out": 64, "activation": "relu"},
//     {"name": "out", "kind": "dense", "out": 1},
//     {"name": "loss", "kind": "element_loss", "loss": "squared_error"}]}
//
// A layer takes the one listed before it, or those that "inputs" names, which come earlier; shapes
// follow from theirs. docs/models.md has the kinds and their keys. Rows of a sample are [rows,
// numbers of a row]; images are rows of channels.
//
// Errors: InvalidArgument, one line with file, layer's place and key.
#ifndef PIPELAB_MODELS_FILES_NETWORK_JSON_H_
#define PIPELAB_MODELS_FILES_NETWORK_JSON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/graph/layer_spec.h"
#include "nlohmann/json.hpp"

namespace pipelab {

absl::StatusOr<ModelGraph> ParseNetwork(absl::string_view text, absl::string_view what);
absl::StatusOr<ModelGraph> ReadNetwork(const nlohmann::json& root, absl::string_view what);
// Whether the file's layers have kinds, and so run.
bool IsNetwork(const nlohmann::json& root);

// Those that files can name, sorted.
std::vector<std::string> NetworkKinds();

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_NETWORK_JSON_H_
