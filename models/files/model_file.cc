#include "models/files/model_file.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "models/files/hugging_face_config.h"
#include "models/files/hugging_face_wrappers.h"
#include "models/files/layer_list_json.h"
#include "models/files/model_names.h"
#include "models/files/network_json.h"
#include "models/files/pipedream_profile.h"
#include "models/zoo/bert.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "models/zoo/published.h"
#include "models/zoo/size_check.h"
#include "models/zoo/vit.h"
#include "tools/base/file.h"
#include "tools/base/file_fault.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// "vgg16" from "profiles/vgg16.graph.txt".
absl::string_view NameOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash != absl::string_view::npos) path.remove_prefix(slash + 1);
  return path.substr(0, path.find('.', 1));
}

absl::StatusOr<LayerList> FromJson(absl::string_view text, absl::string_view what,
                                   absl::string_view name, const ModelFileOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json root, ParseJson(text, what));
  if (root.is_object() && root.contains("nodes") && !root.contains("layers")) {
    if (root.contains("maxFPGAs")) {
      return absl::InvalidArgumentError(
          absl::StrCat(what,
                       ": an input of dnn-partitioning: no model to train can be made of it; "
                       "models are layer lists, inputs of Piper and profiles of PipeDream"));
    }
    PIPELAB_ASSIGN_OR_RETURN(const PiperProblem problem, ReadPiper(root, what, options.piper_unit));
    return ToLayerList(problem, name, what);
  }
  if (IsNetwork(root)) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": a network of layers that run: its costs follow from their sizes and are no list"));
  }
  return ReadLayerList(root, what);
}

absl::StatusOr<ModelGraph> OfImages(const nlohmann::json& root, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const VitConfig config, ReadVisionConfig(root, what));
  PIPELAB_ASSIGN_OR_RETURN(GroupedModel model, BuildVit(config));
  return std::move(model.graph);
}

absl::StatusOr<ModelGraph> OfText(const nlohmann::json& root, absl::string_view what,
                                  const ModelFileOptions& options) {
  const int64_t tokens = options.tokens;
  ModelGraph graph;
  if (IsBertConfig(root)) {
    PIPELAB_ASSIGN_OR_RETURN(const BertConfig config, ReadBertConfig(root, what, tokens));
    PIPELAB_ASSIGN_OR_RETURN(graph, BuildBert(config));
  } else {
    PIPELAB_ASSIGN_OR_RETURN(GptConfig config, ReadHuggingFaceConfig(root, what, tokens));
    if (!options.further_tokens) config.further_tokens = 0;
    PIPELAB_ASSIGN_OR_RETURN(graph, BuildGpt(config));
  }
  const std::string unpriced = UnpricedPartOf(root);
  if (!unpriced.empty()) graph.notes.push_back(absl::StrCat(what, ": ", unpriced));
  if (tokens > 0) return graph;
  const int64_t positions = graph.layers[0].output_shape[0];
  graph.notes.push_back(absl::StrCat(what, ": a sample has ", positions,
                                     " tokens, as many as the file has positions; ", what, "@",
                                     positions > 8192 ? 8192 : std::max<int64_t>(1, positions / 2),
                                     " gives another length (k: 1024, as in @4k)"));
  return graph;
}

absl::Status NoTokens(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(what,
                   ": its samples are what they are; @ sets the tokens of language models by "
                   "name and of a config.json"));
}

absl::StatusOr<ModelGraph> FromConfig(const nlohmann::json& root, absl::string_view what,
                                      absl::string_view name, const ModelFileOptions& options) {
  const bool images = IsVisionConfig(root);
  if (images && options.tokens > 0) return NoTokens(what);
  absl::StatusOr<ModelGraph> graph = images ? OfImages(root, what) : OfText(root, what, options);
  if (!graph.ok() && absl::StartsWith(graph.status().message(), what)) return graph.status();
  if (!graph.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", graph.status().message()));
  }
  graph->name = std::string(name);
  return graph;
}

// "dir/config.json" of a folder.
std::string FileOf(absl::string_view path) {
  std::string file = ResolveOutputPath(path, "");
  return IsDirectory(file) ? JoinPath(file, "config.json") : file;
}

// Whether the word is "owner/name", as a hub has it, and names no file.
bool IsOnHub(absl::string_view word) {
  const size_t slash = word.find('/');
  return slash != 0 && slash == word.rfind('/') && word[0] != '.' &&
         !PathExists(ResolveOutputPath(word, ""));
}

// Where a word has "@4096" at its end; else npos.
size_t TokensAt(absl::string_view word) {
  const size_t at = word.rfind('@');
  const bool in_folder = at != absl::string_view::npos && absl::StrContains(word.substr(at), "/");
  return in_folder ? absl::string_view::npos : at;
}

// Takes "@4096" or "@4k" off the end of a word: 4096; 0 where none is there.
absl::StatusOr<int64_t> TakeTokens(absl::string_view option, absl::string_view* word) {
  const size_t at = TokensAt(*word);
  if (at == absl::string_view::npos) return 0;
  absl::string_view number = word->substr(at + 1);
  const bool thousands = absl::ConsumeSuffix(&number, "k") || absl::ConsumeSuffix(&number, "K");
  const int64_t unit = thousands ? 1024 : 1;
  int64_t tokens = 0;
  if (!absl::SimpleAtoi(number, &tokens) || tokens < 1 || tokens > kMostTokens / unit) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, "=", *word, ": behind @ must be the tokens of a sample, from 1 to ",
                     kMostTokens, ", such as @4096 or @32k (k: 1024)"));
  }
  *word = word->substr(0, at);
  return tokens * unit;
}

}  // namespace

std::string ModelPath(absl::string_view word) { return FileOf(word.substr(0, TokensAt(word))); }

absl::StatusOr<LayerList> ParseModelAsList(absl::string_view text, absl::string_view what,
                                           absl::string_view name,
                                           const ModelFileOptions& options) {
  const bool object = absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{");
  if (object || !absl::StrContains(text, " -- ")) return FromJson(text, what, name, options);
  PIPELAB_ASSIGN_OR_RETURN(const PipeDreamProfile profile, ParsePipeDreamProfile(text, what));
  return ToLayerList(WithoutInputs(profile), name);
}

absl::StatusOr<ModelGraph> ParseModel(absl::string_view text, absl::string_view what,
                                      absl::string_view name, const ModelFileOptions& options) {
  if (const absl::StatusOr<nlohmann::json> root = ParseJson(text, what); root.ok()) {
    if (IsHuggingFaceConfig(*root)) return FromConfig(*root, what, name, options);
    if (options.tokens > 0) return NoTokens(what);
    if (IsNetwork(*root)) return ReadNetwork(*root, what);
  }
  PIPELAB_ASSIGN_OR_RETURN(const LayerList list, ParseModelAsList(text, what, name, options));
  return MakeGraph(list, what);
}

absl::StatusOr<ModelGraph> ReadModelFile(absl::string_view option, absl::string_view path,
                                         const ModelFileOptions& options) {
  const std::string what = absl::StrCat(option, "=", path);
  const absl::StatusOr<std::string> text = ReadTextFile(FileOf(path));
  if (!text.ok()) {
    return absl::Status(text.status().code(), absl::StrCat(what, ": ", text.status().message()));
  }
  absl::StatusOr<ModelGraph> graph = ParseModel(*text, what, NameOf(path), options);
  if (!graph.ok() && options.tokens > 0) {
    ModelFileOptions own = options;
    own.tokens = 0;
    // The model takes other numbers of tokens than the option asks for.
    if (ParseModel(*text, what, NameOf(path), own).ok()) return graph;
  }
  return FaultOfFile(std::move(graph));
}

bool IsModelFile(absl::string_view word) {
  word = word.substr(0, TokensAt(word));
  if (absl::EndsWith(word, ".json") || absl::EndsWith(word, ".txt")) return true;
  return absl::StrContains(word, "/") && !IsOnHub(word);
}

absl::StatusOr<ModelGraph> FindModel(absl::string_view option, absl::string_view word,
                                     const ModelFileOptions& given) {
  ModelFileOptions options = given;
  PIPELAB_ASSIGN_OR_RETURN(const int64_t tokens, TakeTokens(option, &word));
  if (tokens > 0) options.tokens = tokens;
  if (IsModelFile(word)) return ReadModelFile(option, word, options);
  const std::string what = absl::StrCat(option, "=", word);
  const NamedModel named = FindPublished(word);
  if (named.model == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": no such model, and no file, whose name would end in .json or .txt",
                     NearestPublished(word)));
  }
  const PublishedModel& model = *named.model;
  if (options.tokens > 0 && model.build_with_tokens == nullptr) return NoTokens(what);
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, options.tokens == 0
                                                 ? model.build()
                                                 : model.build_with_tokens(options.tokens));
  if (!named.note.empty()) graph.notes = {absl::StrCat(what, ": ", named.note)};
  return graph;
}

void PrintNotes(const ModelGraph& graph) {
  for (const std::string& note : graph.notes) std::fprintf(stderr, "Note: %s.\n", note.c_str());
}

absl::StatusOr<GptConfig> FindLanguageModel(absl::string_view option, absl::string_view word) {
  const std::string what = absl::StrCat(option, "=", word);
  PIPELAB_ASSIGN_OR_RETURN(const int64_t tokens, TakeTokens(option, &word));
  if (IsModelFile(word)) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(FileOf(word)));
    PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json root, FaultOfFile(ParseJson(text, what)));
    if (IsHuggingFaceConfig(root)) {
      PIPELAB_RETURN_IF_ERROR(
          FaultOfFile(ReadHuggingFaceConfig(root, what, /*tokens=*/0).status()));
      return ReadHuggingFaceConfig(root, what, tokens);
    }
  }
  const NamedModel named = FindPublished(word);
  if (named.model != nullptr && named.model->gpt.has_value()) {
    GptConfig config = *named.model->gpt;
    if (tokens > 0) config.tokens = tokens;
    return config;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": must be a language model by name or a config.json"));
}

}  // namespace pipelab
