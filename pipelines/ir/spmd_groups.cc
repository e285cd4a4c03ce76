#include "pipelines/ir/spmd_groups.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

std::string Asked(const LoweringOptions& options) {
  if (options.sharding == Sharding::kReplicated) return "the schedule has its own steps (S)";
  return absl::StrCat("sharding \"", ShardingName(options.sharding), "\"");
}

}  // namespace

absl::Status CheckSpmdGroups(const Schedule& s, const LoweringOptions& options) {
  for (int r = 0; r < s.placement.num_replicas(); ++r) {
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      const std::vector<int>& group = s.placement.groups[r][stage];
      for (int d : group) {
        if (s.order[d] == s.order[group[0]]) continue;
        return absl::InvalidArgumentError(
            absl::StrCat(Asked(options), ": devices ", group[0], " and ", d, " share stage ", stage,
                         " and must run the same actions in the same order"));
      }
      const size_t first = s.placement.groups[0][stage].size();
      if (group.size() == first) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          Asked(options), ": stage ", stage, " has ", first, " devices in replica 0 and ",
          group.size(), " in replica ", r, "; they must be as many"));
    }
  }
  return absl::OkStatus();
}

// Papers do not say what copies that run different micro-batches, or tied parameters in stages that
// are at different micro-batches, would wait for.
absl::Status CheckOwnSteps(const Schedule& s, const LoweringOptions& options) {
  if (options.norm_values > 0) {
    return absl::InvalidArgumentError(
        "--clip_norm: the global norm needs all gradients of a step at once, and the schedule has "
        "its own steps (S), which do not wait for one another");
  }
  if (options.sharding != Sharding::kReplicated) {
    return absl::InvalidArgumentError(
        absl::StrCat(Asked(options),
                     ": the schedule has its own steps (S), which need whole "
                     "parameters"));
  }
  if (s.placement.num_replicas() > 1 && s.prepares.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the schedule has ", s.placement.num_replicas(),
                     " replicas and its own steps (S), which would not sum their gradients"));
  }
  for (const Tie& tie : options.ties) {
    if (std::set<int>(tie.stages.begin(), tie.stages.end()).size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "parameter ", tie.parameter,
          " is tied between stages, and the schedule has its own steps (S), which would not sum "
          "their gradients"));
    }
  }
  return CheckSpmdGroups(s, options);
}

std::vector<SpmdGroup> MakeSpmdGroups(const Schedule& s, const LoweringOptions& options) {
  std::vector<SpmdGroup> groups;
  std::vector<bool> placed(s.num_devices(), false);
  for (const auto& replica : s.placement.groups) {
    for (const std::vector<int>& devices : replica) {
      const int first = devices[0];
      if (devices.size() < 2 || placed[first]) continue;
      for (int d : devices) placed[d] = true;
      SpmdGroup group;
      if (options.sharding == Sharding::kFully) {
        group.weights = WeightRuns(s, first, options.residency);
        if (options.overlap) group.weights = JoinForPrefetch(std::move(group.weights));
        for (size_t i = 0; i < group.weights.size(); ++i) {
          group.weights_by_end.push_back(static_cast<int32_t>(i));
        }
        std::sort(
            group.weights_by_end.begin(), group.weights_by_end.end(),
            [&](int32_t a, int32_t b) { return group.weights[a].end < group.weights[b].end; });
      }
      if (ShardsGradients(options.sharding)) {
        group.gradients_by_end = GradientRuns(s, first, options.residency);
        std::sort(group.gradients_by_end.begin(), group.gradients_by_end.end(),
                  [](const StageRun& a, const StageRun& b) { return a.end < b.end; });
      }
      for (std::vector<int>& set : SharingSets(devices, options.shards)) {
        groups.push_back(group);
        groups.back().devices = std::move(set);
      }
    }
  }
  return groups;
}

}  // namespace pipelab
