// pipelab list: the catalogue.
#include <algorithm>
#include <string>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/commands/command.h"
#include "experiments/commands/output.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/json.h"

ABSL_DECLARE_FLAG(std::string, json);  // schedule_input.cc; `list --json` means --json=-

namespace pipelab {
namespace {

std::string AsJson() {
  nlohmann::json schemes = nlohmann::json::array();
  for (const Scheme& s : Catalog()) {
    schemes.push_back({{"name", std::string(s.name)},
                       {"summary", std::string(s.summary)},
                       {"paper", std::string(s.paper)},
                       {"chunks", s.default_virtual_stages}});
  }
  return DumpJson({{"schemes", schemes}});
}

std::string AsTable() {
  size_t name = 6, summary = 7;
  for (const Scheme& s : Catalog()) {
    name = std::max(name, s.name.size());
    summary = std::max(summary, s.summary.size());
  }
  const auto row = [&](absl::string_view a, absl::string_view b, absl::string_view c,
                       absl::string_view d) {
    return absl::StrFormat("%-*s  %14s  %-*s  %s\n", static_cast<int>(name), a, b,
                           static_cast<int>(summary), c, d);
  };
  std::string text = row("scheme", "virtual stages", "what it does", "paper");
  for (const Scheme& s : Catalog()) {
    absl::StrAppend(&text, row(s.name, absl::StrCat(s.default_virtual_stages), s.summary, s.paper));
  }
  return text;
}

}  // namespace

absl::Status ListCommand(const Words& words) {
  if (words.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[1], "': list takes no name; options begin with --"));
  }
  const std::string json = absl::GetFlag(FLAGS_json);
  if (json.empty()) return WriteOutput("stdout", "-", AsTable());
  return WriteOutput("--json", json, AsJson());
}

}  // namespace pipelab
