#include "pipelines/ir/versions.h"

#include <algorithm>

namespace pipelab {

VersionWalk::VersionWalk(const Schedule& s, int device) : stages_(s.num_stages()) {
  for (const Action& a : s.order[device]) {
    std::vector<int32_t>& uses = stages_[a.stage].uses;
    if (a.version >= static_cast<int>(uses.size())) uses.resize(a.version + 1);
    uses[a.version] += a.kind != ActionKind::kStep && !IsHostTransfer(a.kind);
  }
}

int VersionWalk::Next(const Action& a) {
  StageVersions& v = stages_[a.stage];
  if (IsHostTransfer(a.kind)) return 0;
  if (a.kind != ActionKind::kStep) {
    return --v.uses[a.version] == 0 && a.version != v.newest ? -1 : 0;
  }
  // What nobody needs any more is overwritten.
  const bool kept = v.uses[v.newest] > 0;
  v.newest = a.version;
  return kept ? 1 : 0;
}

bool HasOwnSteps(const Schedule& schedule, int device) {
  const std::vector<Action>& list = schedule.order[device];
  return std::any_of(list.begin(), list.end(),
                     [](const Action& a) { return a.kind == ActionKind::kStep; });
}

bool HasOwnSteps(const Schedule& schedule) {
  for (int d = 0; d < schedule.num_devices(); ++d) {
    if (HasOwnSteps(schedule, d)) return true;
  }
  return false;
}

std::vector<std::vector<int32_t>> VersionUses(const Schedule& schedule) {
  std::vector<std::vector<int32_t>> uses(schedule.num_stages(), {0});
  for (int d = 0; d < schedule.num_devices(); ++d) {
    const VersionWalk walk(schedule, d);
    for (int s = 0; s < schedule.num_stages(); ++s) uses[s] = std::max(uses[s], walk.uses(s));
  }
  return uses;
}

std::vector<int> LiveVersions(const Schedule& schedule) {
  std::vector<int> most(schedule.num_stages(), 1);
  if (!HasOwnSteps(schedule)) return most;
  for (int d = 0; d < schedule.num_devices(); ++d) {
    VersionWalk walk(schedule, d);
    std::vector<int> live(schedule.num_stages(), 1);
    for (const Action& a : schedule.order[d]) {
      live[a.stage] += walk.Next(a);
      most[a.stage] = std::max(most[a.stage], live[a.stage]);
    }
  }
  return most;
}

}  // namespace pipelab
