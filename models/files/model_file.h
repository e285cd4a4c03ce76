// Models by name or from files, of whatever format.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, FindModel("--model", "megatron-76.1b"));
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph h, FindModel("--model", "mine.json"));
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph p, ReadModelFile("--model", "vgg16.graph.txt"));
//
// Formats: networks that run (network_json.h), Hugging Face's config.json
// (hugging_face_config.h), layer lists (layer_list_json.h), Piper's JSON and PipeDream's profiles,
// which are told apart by what is in them. docs/models.md describes them.
//
// Errors: "OPTION=FILE: ...", one line with key or layer and reason.
#ifndef PIPELAB_MODELS_FILES_MODEL_FILE_H_
#define PIPELAB_MODELS_FILES_MODEL_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/files/layer_list.h"
#include "models/files/piper_json.h"
#include "models/graph/layer_spec.h"
#include "models/zoo/gpt.h"

namespace pipelab {

struct ModelFileOptions {
  PiperTimeUnit piper_unit = PiperTimeUnit::kSeconds;  // Piper's files do not say it
  int64_t tokens = 0;          // of a sample, for a config.json; 0: as many as it has positions
  bool further_tokens = true;  // with its heads for these, which are of training alone
};

// A word with a "/", or that ends in ".json" or ".txt", is a file; all else must be the name of a
// published model (model_names.h), and so is "owner/name" where no file is. "@4096" or "@4k" at its
// end gives the tokens of a sample, where the model is a language model by name or a config.json.
absl::StatusOr<ModelGraph> FindModel(absl::string_view option, absl::string_view word,
                                     const ModelFileOptions& options = ModelFileOptions());

// The word is one of a file.
bool IsModelFile(absl::string_view word);

// Writes to stderr, a line each, the notes that the user should read about the model.
void PrintNotes(const ModelGraph& graph);

// The same as sizes: of a language model by name or a config.json alone.
absl::StatusOr<GptConfig> FindLanguageModel(absl::string_view option, absl::string_view word);

// The file that a word names: without "@4096" at its end, from the user's folder, and a folder's
// config.json.
std::string ModelPath(absl::string_view word);

// A relative path starts at the user's folder (tools/base/file.h). A folder stands for the
// config.json in it.
absl::StatusOr<ModelGraph> ReadModelFile(absl::string_view option, absl::string_view path,
                                         const ModelFileOptions& options = ModelFileOptions());

// `what` names the file in errors. PipeDream's profiles come without their inputs, and models of
// foreign formats are called `name`.
absl::StatusOr<ModelGraph> ParseModel(absl::string_view text, absl::string_view what,
                                      absl::string_view name,
                                      const ModelFileOptions& options = ModelFileOptions());
// The same before it becomes a graph: to be written as a layer list.
absl::StatusOr<LayerList> ParseModelAsList(absl::string_view text, absl::string_view what,
                                           absl::string_view name,
                                           const ModelFileOptions& options = ModelFileOptions());

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_MODEL_FILE_H_
