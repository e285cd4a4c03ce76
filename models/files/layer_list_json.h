// Layer lists as JSON files: a model of one's own without C++.
//
//   PIPELAB_ASSIGN_OR_RETURN(LayerList list, ParseLayerList(text, "--model=mine.json"));
//   std::string again = LayerListToJson(list);       // ParseLayerList reads it back
//
// docs/models.md describes the format, models/files/specs/ has examples. Quantities have their
// units in the values ("12 Gflop", "3 ms", "8 MiB").
// Errors: InvalidArgument, one line with file, key and reason: "--model=mine.json:
// layers[2].time.forward: \"3\": the unit is missing; must be a number and a unit, such as \"5
// us\"". What is wrong with the list as a whole, MakeGraph (layer_list.h) says.
#ifndef PIPELAB_MODELS_FILES_LAYER_LIST_JSON_H_
#define PIPELAB_MODELS_FILES_LAYER_LIST_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/files/layer_list.h"
#include "nlohmann/json.hpp"

namespace pipelab {

// `what` names the file in errors.
absl::StatusOr<LayerList> ParseLayerList(absl::string_view text, absl::string_view what);
absl::StatusOr<LayerList> ReadLayerList(const nlohmann::json& root, absl::string_view what);

// Every pass in full.
std::string LayerListToJson(const LayerList& list);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_LAYER_LIST_JSON_H_
