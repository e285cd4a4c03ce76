// "tensor_parallel" of a listed layer (layer_list.h), read and written. docs/models.md describes
// it.
//
//   PIPELAB_ASSIGN_OR_RETURN(layer.tensor_parallel, ReadListedSplit(object, layer));
//
// Errors: InvalidArgument, one line with file, key and reason.
#ifndef PIPELAB_MODELS_FILES_LISTED_SPLIT_JSON_H_
#define PIPELAB_MODELS_FILES_LISTED_SPLIT_JSON_H_

#include "absl/status/statusor.h"
#include "models/files/layer_list.h"
#include "nlohmann/json.hpp"
#include "tools/base/json_object.h"

namespace pipelab {

// Reads the split of `object`, the whole layer, whose other fields have been read into `layer`.
absl::StatusOr<ListedSplit> ReadListedSplit(const JsonObject& object, const ListedLayer& layer);
nlohmann::json WrittenListedSplit(const ListedSplit& split);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_LISTED_SPLIT_JSON_H_
