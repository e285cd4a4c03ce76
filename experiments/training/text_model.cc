#include "experiments/training/text_model.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "models/data/text_corpus.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kBytes[] = "bytes";

// The sizes by name, in the file and in the configuration.
std::vector<std::pair<const char*, int64_t*>> SizesOf(GptConfig* config) {
  return {{"layers", &config->layers},
          {"hidden", &config->hidden},
          {"heads", &config->heads},
          {"tokens", &config->tokens},
          {"feed_forward", &config->feed_forward},
          {"experts", &config->experts.experts},
          {"chosen", &config->experts.chosen}};
}

}  // namespace

std::map<std::string, std::string> TextModelSettings(const GptConfig& config,
                                                     const ByteVocabulary& vocabulary) {
  std::map<std::string, std::string> settings;
  GptConfig copy = config;
  for (const auto& [name, size] : SizesOf(&copy)) settings[name] = absl::StrCat(*size);
  std::vector<int32_t> all;
  for (int32_t id = 0; id < vocabulary.size(); ++id) all.push_back(id);
  settings[kBytes] = absl::BytesToHexString(vocabulary.Decode(all));
  return settings;
}

absl::StatusOr<TextModel> ReadTextModel(absl::string_view option, const std::string& file) {
  const auto error = [&](const auto&... words) {
    return absl::FailedPreconditionError(absl::StrCat(option, "=", file, ": ", words...));
  };
  absl::StatusOr<TrainingState> state = ReadTrainingState(file);
  if (!state.ok())
    return absl::Status(state.status().code(), error(state.status().message()).message());
  const auto setting = [&](const char* name) {
    const auto it = state->settings.find(name);
    return it == state->settings.end() ? std::string() : it->second;
  };
  const std::string bytes = absl::HexStringToBytes(setting(kBytes));
  if (bytes.empty()) {
    return error("is of no text model; gpt_train writes one with --checkpoint=FILE");
  }
  GptConfig config;
  int64_t experts = 0;
  if (absl::SimpleAtoi(setting("experts"), &experts) && experts > 0) {
    config = LlamaConfig(1, 1, 1, 1, 1, 1);
  }
  for (const auto& [name, size] : SizesOf(&config)) {
    if (absl::SimpleAtoi(setting(name), size)) continue;
    return error("\"", name, "\" is \"", setting(name), "\"; it must be a number");
  }
  config.vocabulary = static_cast<int64_t>(bytes.size());
  absl::StatusOr<ModelGraph> graph = BuildGpt(config);
  if (!graph.ok()) return error(graph.status().message());
  TextCorpus known;
  known.documents = {bytes};
  return TextModel{*std::move(graph), ByteVocabulary(known), *std::move(state)};
}

}  // namespace pipelab
