// The weights beside a model's config.json.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, FindModel("--model", "Qwen2-0.5B/config.json@512"));
//   PIPELAB_RETURN_IF_ERROR(ReadPretrained("--model", "Qwen2-0.5B/config.json@512", graph, take));
//
// Errors: "OPTION=WORD: ...", where the word is no config.json; those of hugging_face_weights.h and
// weight_files.h.
#ifndef PIPELAB_MODELS_FILES_PRETRAINED_H_
#define PIPELAB_MODELS_FILES_PRETRAINED_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/files/hugging_face_weights.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

// `word` is a config.json or its folder, as FindModel takes it, and `graph` what that made of it.
absl::Status ReadPretrained(absl::string_view option, absl::string_view word,
                            const ModelGraph& graph, const TakeWeight& take);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_PRETRAINED_H_
