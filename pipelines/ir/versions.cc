#include "pipelines/ir/versions.h"

#include <algorithm>

namespace pipelab {
namespace {

// A stage's versions on one device.
struct StageVersions {
  std::vector<int32_t> uses = {0};  // [version]
  int newest = 0, live = 1;
};

// [stage] All uses in the device's list.
std::vector<StageVersions> CountUses(const Schedule& s, int device) {
  std::vector<StageVersions> stages(s.num_stages());
  for (const Action& a : s.order[device]) {
    std::vector<int32_t>& uses = stages[a.stage].uses;
    if (a.version >= static_cast<int>(uses.size())) uses.resize(a.version + 1);
    uses[a.version] += a.kind != ActionKind::kStep;
  }
  return stages;
}

// Calls fn(stage, live) whenever the number of live versions of a stage changes.
template <typename Fn>
void WalkVersions(const Schedule& s, int device, Fn&& fn) {
  std::vector<StageVersions> stages = CountUses(s, device);
  for (const Action& a : s.order[device]) {
    StageVersions& v = stages[a.stage];
    if (a.kind == ActionKind::kStep) {
      // What nobody needs any more is overwritten.
      if (v.uses[v.newest] > 0) fn(a.stage, ++v.live);
      v.newest = a.version;
    } else if (--v.uses[a.version] == 0 && a.version != v.newest) {
      fn(a.stage, --v.live);
    }
  }
}

}  // namespace

bool HasOwnSteps(const Schedule& schedule) {
  for (const std::vector<Action>& list : schedule.order) {
    for (const Action& a : list) {
      if (a.kind == ActionKind::kStep) return true;
    }
  }
  return false;
}

std::vector<std::vector<int32_t>> VersionUses(const Schedule& schedule) {
  std::vector<std::vector<int32_t>> uses(schedule.num_stages(), {0});
  for (int d = 0; d < schedule.num_devices(); ++d) {
    const std::vector<StageVersions> stages = CountUses(schedule, d);
    for (int s = 0; s < schedule.num_stages(); ++s) uses[s] = std::max(uses[s], stages[s].uses);
  }
  return uses;
}

std::vector<int> LiveVersions(const Schedule& schedule) {
  std::vector<int> most(schedule.num_stages(), 1);
  if (!HasOwnSteps(schedule)) return most;
  for (int d = 0; d < schedule.num_devices(); ++d) {
    WalkVersions(schedule, d,
                 [&](int stage, int live) { most[stage] = std::max(most[stage], live); });
  }
  return most;
}

std::vector<int64_t> PeakStashed(const Schedule& schedule, absl::Span<const int64_t> weights) {
  std::vector<int64_t> peak(schedule.num_devices(), 0);
  if (!HasOwnSteps(schedule)) return peak;
  for (int d = 0; d < schedule.num_devices(); ++d) {
    std::vector<int> live(schedule.num_stages(), 1);
    int64_t level = 0;
    WalkVersions(schedule, d, [&](int stage, int now) {
      level += (now - live[stage]) * weights[stage];
      live[stage] = now;
      peak[d] = std::max(peak[d], level);
    });
  }
  return peak;
}

}  // namespace pipelab
