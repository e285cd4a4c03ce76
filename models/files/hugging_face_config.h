// Models as Hugging Face's transformers describes them: a config.json.
//
//   PIPELAB_ASSIGN_OR_RETURN(GptConfig c, ReadHuggingFaceConfig(root, "--model=config.json"));
//   c.tokens = 4096;                                  // else what the file allows at most
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, BuildGpt(c));
//
// Model types: gpt2, llama, llama4_text, mistral, mixtral, qwen2, qwen3, qwen3_moe, gemma, gemma2,
// gemma3_text, phi3, gpt_oss, deepseek_v3, kimi_k2, and files that hold one of them (text_config);
// bert, with its head of masked tokens; vit, of images. Keys that change nothing of shapes and
// costs (the start of weights, words with a meaning, generation) are passed over; those that would
// change them in a way that no layer has (biases of the MLP alone) are refused.
//
// Errors: InvalidArgument, one line with file and key.
#ifndef PIPELAB_MODELS_FILES_HUGGING_FACE_CONFIG_H_
#define PIPELAB_MODELS_FILES_HUGGING_FACE_CONFIG_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/zoo/bert.h"
#include "models/zoo/gpt.h"
#include "models/zoo/vit.h"
#include "nlohmann/json.hpp"

namespace pipelab {

// Whether the file says a "model_type", as no other kind of model file does.
bool IsHuggingFaceConfig(const nlohmann::json& root);

// With `tokens` > 0 samples have so many; with 0 as many as the file has positions.
absl::StatusOr<GptConfig> ReadHuggingFaceConfig(const nlohmann::json& root, absl::string_view what,
                                                int64_t tokens = 0);

// Configurations of model_type "bert": a BertForMaskedLM.
bool IsBertConfig(const nlohmann::json& root);
absl::StatusOr<BertConfig> ReadBertConfig(const nlohmann::json& root, absl::string_view what,
                                          int64_t tokens = 0);

// Configurations of model_type "vit": a ViTForImageClassification.
bool IsVisionConfig(const nlohmann::json& root);
absl::StatusOr<VitConfig> ReadVisionConfig(const nlohmann::json& root, absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_HUGGING_FACE_CONFIG_H_
