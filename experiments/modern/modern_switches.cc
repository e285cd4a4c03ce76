#include "experiments/modern/modern_switches.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace pipelab {
namespace {

// How the rows of an experiment begin, and how the run ends that the others are compared with.
struct Experiment {
  absl::string_view prefix, before;
};

constexpr Experiment kExperiments[] = {
    {"mbridge-ab-llama3-70b-sft-", "golden"},
    {"mbridge-ab-moonlight-", "none"},
    {"mbridge-ab-nemotron3nano-", "moe"},
    {"mbridge-ab-qwen3-30b-hybridep-overlap-", "off"},
    {"mbridge-ab-qwen3-30b-sft-alltoall-overlap-", "off"},
};

bool IsBeforeSwitch(const Experiment& e, absl::string_view id) {
  return absl::StartsWith(id, e.prefix) && id.substr(e.prefix.size()) == e.before;
}

}  // namespace

std::vector<ModernSwitch> SwitchesOf(const std::vector<ModernResult>& all) {
  std::vector<ModernSwitch> switches;
  for (const ModernResult& r : all) {
    if (!r.judged()) continue;
    for (const Experiment& e : kExperiments) {
      if (!absl::StartsWith(r.row->id, e.prefix) || IsBeforeSwitch(e, r.row->id)) continue;
      const auto before = std::find_if(all.begin(), all.end(), [&](const ModernResult& other) {
        return other.judged() && IsBeforeSwitch(e, other.row->id);
      });
      if (before != all.end()) switches.push_back({&*before, &r});
    }
  }
  return switches;
}

}  // namespace pipelab
