#include "pipelines/runtime/staleness.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/ir/versions.h"

namespace pipelab {

absl::StatusOr<Staleness> PublishedStaleness(const Schedule& schedule) {
  const int n = schedule.num_stages();
  // Counted from 0, what the papers call t is micro-batch t + 1, and k is stage k + 1.
  if (schedule.name == "pipedream") {
    return Staleness{1, [n](int k, int t) { return std::max(0, (t + 1) - n + k); }};
  }
  if (schedule.name == "pipedream_vertical_sync") {
    return Staleness{1, [n](int, int t) { return std::max(0, (t + 1) - n); }};
  }
  const bool local =
      !schedule.HasUnequalPasses() && (schedule.name == "local" || schedule.name == "local_replay");
  if ((schedule.name == "pipedream_2bw" || local) && HasOwnSteps(schedule)) {
    const int updates = static_cast<int>(VersionUses(schedule)[0].size()) - 1;
    const int group = schedule.num_micro_batches / updates;
    const int late = local ? 0 : 1;
    return Staleness{group, [group, late](int, int t) { return std::max(0, t / group - late); }};
  }
  if (schedule.name == "over_time") {
    return Staleness{1, [](int, int t) { return t; },
                     [](int from, int to) { return 2 * (to - from); }};
  }
  return absl::NotFoundError(
      absl::StrCat("no staleness rule is published for schedule \"", schedule.name, "\""));
}

}  // namespace pipelab
