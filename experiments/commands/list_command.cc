// pipelab list: what has a name: schemes, models and clusters.
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/commands/command.h"
#include "experiments/flags/output.h"
#include "models/zoo/published.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"
#include "tools/base/text_columns.h"

ABSL_DECLARE_FLAG(std::string, json);  // schedule_input.cc; `list --json` means --json=-

namespace pipelab {
namespace {

// A table's lines, the header first, and the same as JSON.
struct Listing {
  std::vector<std::vector<std::string>> lines;
  std::vector<bool> right;  // [column]
  nlohmann::json json = nlohmann::json::array();
};

Listing Schemes() {
  Listing all;
  all.lines = {{"scheme", "virtual stages", "what it does", "paper"}};
  all.right = {false, true, false, false};
  for (const Scheme& s : Catalog()) {
    all.lines.push_back({std::string(s.name), absl::StrCat(s.default_virtual_stages),
                         std::string(s.summary), std::string(s.paper)});
    all.json.push_back({{"name", std::string(s.name)},
                        {"summary", std::string(s.summary)},
                        {"paper", std::string(s.paper)},
                        {"chunks", s.default_virtual_stages}});
  }
  return all;
}

absl::StatusOr<Listing> Models() {
  Listing all;
  all.lines = {{"model", "parameters", "source"}};
  all.right = {false, true, false};
  for (const PublishedModel& m : PublishedModels()) {
    PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, m.build());
    const int64_t parameters = graph.num_parameters();
    constexpr double kMillion = 1e6;
    all.lines.push_back(
        {m.name, absl::StrFormat("%.1f M", static_cast<double>(parameters) / kMillion), m.source});
    all.json.push_back({{"name", m.name}, {"parameters", parameters}, {"source", m.source}});
  }
  return all;
}

absl::StatusOr<Listing> Clusters() {
  Listing all;
  all.lines = {{"cluster", "devices", "what it is"}};
  all.right = {false, true, false};
  for (const std::string& name : ClusterNames()) {
    PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec c, LoadCluster("--cluster", name));
    all.lines.push_back({name, absl::StrCat(c.max_devices()), c.title});
    all.json.push_back({{"name", name}, {"devices", c.max_devices()}, {"title", c.title}});
  }
  return all;
}

absl::StatusOr<Listing> ListingOf(const std::string& what) {
  if (what == "schemes") return Schemes();
  if (what == "models") return Models();
  if (what == "clusters") return Clusters();
  return absl::InvalidArgumentError(
      absl::StrCat("'", what, "': list takes schemes, models or clusters",
                   DidYouMean(what, {"schemes", "models", "clusters"})));
}

}  // namespace

absl::Status ListCommand(const Words& words) {
  if (words.size() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[2], "': list takes schemes, models or clusters, one at a time"));
  }
  const std::string what = words.size() > 1 ? words[1] : "schemes";
  PIPELAB_ASSIGN_OR_RETURN(const Listing all, ListingOf(what));
  const std::string json = absl::GetFlag(FLAGS_json);
  if (!json.empty())
    return WriteOutput("--json", json, DumpJson({{"schema", kOutputSchema}, {what, all.json}}));
  return WriteOutput("stdout", "-", AlignColumns(all.lines, /*header_lines=*/1, all.right));
}

}  // namespace pipelab
