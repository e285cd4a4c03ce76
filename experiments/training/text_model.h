// A GPT of bytes in its checkpoint: what gpt_train writes beside the weights, and `pipelab
// generate` reads, so that the file alone is enough.
//
//   part.settings = TextModelSettings(config, vocabulary);                   // gpt_train
//   PIPELAB_ASSIGN_OR_RETURN(TextModel model, ReadTextModel("--resume", "out/gpt.safetensors"));
//   model.vocabulary.Encode("It is a truth");
#ifndef PIPELAB_EXPERIMENTS_TRAINING_TEXT_MODEL_H_
#define PIPELAB_EXPERIMENTS_TRAINING_TEXT_MODEL_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/checkpoint/training_state.h"
#include "models/data/text_batches.h"
#include "models/graph/layer_spec.h"
#include "models/zoo/gpt.h"

namespace pipelab {

struct TextModel {
  ModelGraph graph;
  ByteVocabulary vocabulary;
  TrainingState state;
};

// The settings of a GPT as gpt_train makes them: its sizes, and the bytes that it knows.
std::map<std::string, std::string> TextModelSettings(const GptConfig& config,
                                                     const ByteVocabulary& vocabulary);

// InvalidArgument "OPTION=FILE: ..." for a file that is no checkpoint of such a model.
absl::StatusOr<TextModel> ReadTextModel(absl::string_view option, const std::string& file);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAINING_TEXT_MODEL_H_
