#include "pipelines/ir/weight_ring.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipelines/ir/sharding.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status CheckReplicas(const Schedule& s) {
  const auto error = [&](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat("weights that travel: ", why...));
  };
  const int devices = s.num_devices();
  if (s.num_stages() != devices || s.placement.num_replicas() != devices) {
    return error("the schedule has ", s.num_stages(), " stages and ", s.placement.num_replicas(),
                 " replicas; it must have one of each a device, ", devices);
  }
  for (int r = 0; r < devices; ++r) {
    for (int stage = 0; stage < devices; ++stage) {
      if (s.placement.groups[r][stage] == std::vector<int>{r}) continue;
      return error("stage ", stage, " of replica ", r, " must be on device ", r, " alone");
    }
  }
  if (s.num_slices > 1 || s.forward_only || !s.micro_batches_of_stage.empty() ||
      !s.carried.empty() || !s.prepares.empty()) {
    return error("stages must train on micro-batches of one size, without token slices");
  }
  for (const auto& order : s.order) {
    for (const Action& a : order) {
      if (a.kind == ActionKind::kStep) return error("the schedule must not have steps (S)");
    }
  }
  return absl::OkStatus();
}

int Modulo(int a, int n) { return (a % n + n) % n; }

}  // namespace

absl::StatusOr<WeightRing> WeightRing::Make(const Schedule& s) {
  PIPELAB_RETURN_IF_ERROR(CheckReplicas(s));
  const int devices = s.num_devices();
  const auto next = [&](int device) { return (device + 1) % devices; };
  WeightRing ring;
  ring.turns.resize(devices);
  // [turn] (device, stage) with weights there, uses first.
  std::vector<std::set<std::pair<int, int>>> there;
  std::vector<std::map<std::pair<int, int>, std::vector<int>>> added(
      devices);  // [stage] turn, device
  for (int d = 0; d < devices; ++d) {
    int turn = 0;
    for (const Action& a : s.order[d]) {
      const bool forward = a.kind == ActionKind::kForward;
      turn += Modulo((forward ? a.stage : devices - 1 - a.stage) + d - turn, devices);
      ring.turns[d].push_back(turn);
      if (turn >= static_cast<int>(there.size())) there.resize(turn + 1);
      if (d != OwnerOf(a.stage, devices)) there[turn].insert({d, a.stage});
      if (a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardWeight) {
        added[a.stage][{turn, d}].push_back(a.micro_batch);
      }
    }
  }
  // Where the sums go, on to the owner.
  for (int stage = 0; stage < devices; ++stage) {
    std::vector<int>& sums = ring.sums.emplace_back(s.num_micro_batches);
    int place = 0;
    for (const auto& [at, micro_batches] : added[stage]) {
      for (int m : micro_batches) sums[m] = place;
      ++place;
    }
    if (devices == 1) continue;
    auto [t, device] = added[stage].begin()->first;
    const int last = added[stage].rbegin()->first.first;
    for (; t < last || device != OwnerOf(stage, devices); ++t) {
      if (t + 2 > static_cast<int>(ring.gradients.size())) ring.gradients.resize(t + 2);
      ring.gradients[t + 1].push_back({stage, device, next(device)});
      device = next(device);
    }
  }
  there.resize(std::max(there.size(), ring.gradients.size()));
  ring.gradients.resize(there.size());
  ring.weights.resize(there.size());
  ring.released.resize(there.size());
  // Back from each use to where the weights come from.
  for (int t = ring.num_turns() - 1; t > 0; --t) {
    std::set<std::pair<int, int>>& before = there[t - 1];
    std::vector<std::pair<int, int>> sent;
    for (const auto& at : there[t]) {
      if (before.count(at) == 0) sent.push_back(at);
    }
    for (const auto& [device, stage] : sent) {
      const int from = Modulo(device - 1, devices);
      if (from != OwnerOf(stage, devices)) before.insert({from, stage});
    }
    for (const auto& [device, stage] : sent) {
      // Another's way may lead through this device.
      if (before.count({device, stage}) > 0) continue;
      ring.weights[t - 1].push_back({stage, Modulo(device - 1, devices), device});
    }
  }
  for (int t = 0; t < ring.num_turns(); ++t) {
    for (const auto& [device, stage] : there[t]) {
      const bool stays = t + 1 < ring.num_turns() && there[t + 1].count({device, stage}) > 0;
      if (!stays) ring.released[t].push_back({stage, device});
    }
  }
  return ring;
}

}  // namespace pipelab
