#include "models/files/model_file.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/files/layer_list_json.h"
#include "models/files/network_json.h"
#include "models/files/pipedream_profile.h"
#include "models/zoo/published.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/file.h"
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

}  // namespace

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
  if (const absl::StatusOr<nlohmann::json> root = ParseJson(text, what);
      root.ok() && IsNetwork(*root)) {
    return ReadNetwork(*root, what);
  }
  PIPELAB_ASSIGN_OR_RETURN(const LayerList list, ParseModelAsList(text, what, name, options));
  return MakeGraph(list, what);
}

absl::StatusOr<ModelGraph> ReadModelFile(absl::string_view option, absl::string_view path,
                                         const ModelFileOptions& options) {
  const std::string what = absl::StrCat(option, "=", path);
  const absl::StatusOr<std::string> text = ReadTextFile(ResolveOutputPath(path, ""));
  if (!text.ok()) {
    return absl::Status(text.status().code(), absl::StrCat(what, ": ", text.status().message()));
  }
  return ParseModel(*text, what, NameOf(path), options);
}

absl::StatusOr<ModelGraph> FindModel(absl::string_view option, absl::string_view word,
                                     const ModelFileOptions& options) {
  if (absl::StrContains(word, "/") || absl::EndsWith(word, ".json") ||
      absl::EndsWith(word, ".txt")) {
    return ReadModelFile(option, word, options);
  }
  std::vector<absl::string_view> names;
  for (const PublishedModel& m : PublishedModels()) {
    if (m.name == word) return m.build();
    names.push_back(m.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      option, "=", word, ": no such model, and no file, whose name would end in .json or .txt",
      NearestOrAll(word, names)));
}

}  // namespace pipelab
