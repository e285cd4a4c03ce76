#include "pipelines/cluster/catalog.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "pipelines/cluster/cluster_files.h"
#include "pipelines/cluster/cluster_json.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/file.h"
#include "tools/base/file_fault.h"
#include "tools/base/status_macros.h"

namespace pipelab {

std::vector<std::string> ClusterNames() {
  std::vector<std::string> names;
  for (const EmbeddedText& file : ClusterFiles()) names.emplace_back(file.name);
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

absl::StatusOr<ClusterSpec> LoadAsItIs(absl::string_view word, const std::string& what) {
  if (absl::StrContains(word, "/") || absl::EndsWith(word, ".json")) {
    const absl::StatusOr<std::string> text = ReadTextFile(ResolveOutputPath(word, ""));
    if (!text.ok()) {
      return absl::Status(text.status().code(), absl::StrCat(what, ": ", text.status().message()));
    }
    return FaultOfFile(ParseCluster(*text, what));
  }
  const std::string name = absl::StrReplaceAll(word, {{"_", "-"}});
  for (const EmbeddedText& file : ClusterFiles()) {
    if (file.name == name) return ParseCluster(file.text, what);
  }
  const std::vector<std::string> names = ClusterNames();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": no such cluster, and no file, whose name would end in .json",
                   NearestOrAll(word, {names.begin(), names.end()})));
}

// `text`: NODES or NODESxDEVICES.
// A file of so many devices is refused, too.
absl::Status CheckUnits(const std::string& what, const ClusterSpec& cluster) {
  const absl::Status checked = CheckCluster(cluster);
  return checked.ok() ? checked
                      : absl::InvalidArgumentError(absl::StrCat(what, ": ", checked.message()));
}

absl::Status SetUnits(const std::string& what, absl::string_view text, ClusterSpec* cluster) {
  constexpr int64_t kMostNodes = int64_t{1} << 20, kMostDevices = 1024;
  const std::vector<absl::string_view> words = absl::StrSplit(text, 'x');
  int64_t nodes = 0, devices = 1;
  if (words.size() > 2 || !absl::SimpleAtoi(words[0], &nodes) || nodes < 1 || nodes > kMostNodes ||
      !absl::SimpleAtoi(words.back(), &devices) || devices < 1 ||
      (words.size() == 2 && devices > kMostDevices)) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": after the colon must be a number of nodes, 1 to ", kMostNodes,
        ", such as 64, or that and the devices of a node, 1 to ", kMostDevices, ", such as 64x4"));
  }
  ClusterLevel& outer = cluster->levels.back();
  if (cluster->levels.size() == 1 || !outer.shape.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": ", cluster->name, " is one ", outer.shape.empty() ? "node" : "grid of devices",
        "; a number of nodes is for clusters whose nodes a network connects"));
  }
  outer.size = nodes;
  if (words.size() == 1) return CheckUnits(what, *cluster);
  ClusterLevel& node = cluster->levels.front();
  if (cluster->levels.size() > 2 || node.sharing != Sharing::kDevice) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": the devices of a node of ", cluster->name,
                     " are not all behind one switch, so their number cannot change"));
  }
  node.size = devices;
  return CheckUnits(what, *cluster);
}

}  // namespace

absl::StatusOr<ClusterSpec> LoadCluster(absl::string_view option, absl::string_view word) {
  const std::string what =
      option.empty() ? absl::StrCat("'", word, "'") : absl::StrCat(option, "=", word);
  const size_t colon = word.rfind(':');
  PIPELAB_ASSIGN_OR_RETURN(ClusterSpec cluster, LoadAsItIs(word.substr(0, colon), what));
  if (colon != absl::string_view::npos) {
    PIPELAB_RETURN_IF_ERROR(SetUnits(what, word.substr(colon + 1), &cluster));
  }
  return cluster;
}

absl::StatusOr<std::vector<ClusterSpec>> LoadClusters(absl::string_view option,
                                                      absl::string_view words) {
  std::vector<ClusterSpec> clusters;
  for (absl::string_view word : absl::StrSplit(words, ',', absl::SkipEmpty())) {
    PIPELAB_ASSIGN_OR_RETURN(ClusterSpec cluster, LoadCluster(option, word));
    clusters.push_back(std::move(cluster));
  }
  if (!clusters.empty()) return clusters;
  return absl::InvalidArgumentError(absl::StrCat(option, "=: must name one"));
}

}  // namespace pipelab
