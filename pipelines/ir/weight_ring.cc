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
  if (s.weight_group < 1 || devices % s.weight_group != 0 ||
      (devices > 1 && s.weight_group == devices)) {
    return error("groups of ", s.weight_group, " devices; the size must divide ", devices,
                 " into two groups or more");
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

// Who has what first, and who gives it to whom.
class Ways {
 public:
  explicit Ways(const Schedule& s) : devices_(s.num_devices()), size_(s.weight_group) {}

  int devices() const { return devices_; }
  int groups() const { return devices_ / size_; }
  bool ring() const { return size_ == 1; }
  int GroupOf(int device) const { return device / size_; }
  // A group's device that takes what comes for it, and gives on what goes: the place of the stage's
  // owner, so that stages share the links between groups.
  int Gate(int group, int stage) const { return group * size_ + Owner(stage) % size_; }
  int Owner(int stage) const { return OwnerOf(stage, devices_, size_); }
  // From whom a device has a stage's weights that it does not own.
  int Giver(int device, int stage) const {
    if (ring()) return Modulo(device - 1, devices_);
    const int gate = Gate(GroupOf(device), stage);
    return device == gate ? Owner(stage) : gate;
  }
  // How many turns before it is needed a hop of weights begins. An owner has them at any time.
  int Ahead(int from, int to) const {
    return GroupOf(from) == GroupOf(to) || ring() ? 1 : groups() + 1;
  }
  // By how many turns it is behind the first. A group's weights come to its gate a turn before.
  int Behind(int device) const { return GroupOf(device) + (ring() ? 0 : 1); }

 private:
  int devices_, size_;
};

// When and where a stage's gradients are made, and of which micro-batches.
using Added = std::map<std::pair<int, int>, std::vector<int>>;  // turn, device

// What moves beside each turn.
class Hops {
 public:
  void Add(int turn, const WeightHop& hop) {
    const auto end = static_cast<size_t>(turn) + static_cast<size_t>(hop.turns);
    if (end > hops_.size()) hops_.resize(end);
    hops_[turn].push_back(hop);
  }
  std::vector<std::vector<WeightHop>> Take() { return std::move(hops_); }

 private:
  std::vector<std::vector<WeightHop>> hops_;
};

// Each turn one device on, and at last to the owner; `sums`: the order of adding.
void SumsInRing(const Ways& ways, int stage, const Added& added, Hops* hops,
                std::vector<int>* sums) {
  int place = 0;
  for (const auto& [at, micro_batches] : added) {
    for (int m : micro_batches) (*sums)[m] = place;
    ++place;
  }
  if (ways.devices() == 1) return;
  int turn = added.begin()->first.first, device = added.begin()->first.second;
  const int last = added.rbegin()->first.first, owner = ways.Owner(stage);
  while (turn < last || device != owner) {
    const int to = (device + 1) % ways.devices();
    hops->Add(++turn, {stage, device, to});
    device = to;
  }
}

// From group to group: the sum comes to a group's gate, and then the gradients of its other
// devices.
void SumsInGroups(const Ways& ways, int stage, const Added& added, Hops* hops,
                  std::vector<int>* sums) {
  constexpr int kSumTurns = 2;
  int place = 0, at = -1,
      ready = -kSumTurns;  // at: the device that has the sum, after turn `ready`
  for (auto it = added.begin(); it != added.end();) {
    const int turn = it->first.first;
    const int gate = ways.Gate(ways.GroupOf(it->first.second), stage);
    const int came = std::max(turn + 1, ready + kSumTurns);
    if (at >= 0 && at != gate) hops->Add(came - kSumTurns + 1, {stage, at, gate, kSumTurns});
    at = gate;
    ready = came;
    const auto add = [&](const std::vector<int>& micro_batches) {
      for (int m : micro_batches) (*sums)[m] = place;
      ++place;
    };
    if (const auto own = added.find({turn, gate}); own != added.end()) add(own->second);
    for (; it != added.end() && it->first.first == turn; ++it) {
      if (it->first.second == gate) continue;
      hops->Add(came, {stage, it->first.second, gate});
      add(it->second);
    }
  }
  if (const int owner = ways.Owner(stage); at != owner) {
    hops->Add(ready + 1, {stage, at, owner});
  }
}

// Back from each use to where the weights come from. `there`: [turn] (device, stage) with weights,
// at first uses alone.
std::vector<std::vector<WeightHop>> WeightHops(const Ways& ways,
                                               std::vector<std::set<std::pair<int, int>>>* there) {
  std::vector<std::vector<WeightHop>> hops(there->size());
  for (int t = static_cast<int>(there->size()) - 1; t > 0; --t) {
    std::set<std::pair<int, int>>& before = (*there)[t - 1];
    std::vector<std::pair<int, int>> sent;
    for (const auto& at : (*there)[t]) {
      if (before.count(at) == 0) sent.push_back(at);
    }
    for (const auto& [device, stage] : sent) {
      const int from = ways.Giver(device, stage);
      if (from != ways.Owner(stage)) before.insert({from, stage});
    }
    for (const auto& [device, stage] : sent) {
      // Another's way may lead through this device.
      if (before.count({device, stage}) > 0) continue;
      const int from = ways.Giver(device, stage), begin = std::max(0, t - ways.Ahead(from, device));
      hops[begin].push_back({stage, from, device, t - begin});
    }
  }
  return hops;
}

}  // namespace

absl::StatusOr<WeightRing> WeightRing::Make(const Schedule& s) {
  PIPELAB_RETURN_IF_ERROR(CheckReplicas(s));
  const Ways ways(s);
  const int devices = s.num_devices();
  WeightRing ring;
  ring.turns.resize(devices);
  std::vector<std::set<std::pair<int, int>>> there;
  std::vector<Added> added(devices);  // [stage]
  for (int d = 0; d < devices; ++d) {
    int turn = 0;
    for (const Action& a : s.order[d]) {
      const bool forward = a.kind == ActionKind::kForward;
      const int slot = (forward ? a.stage : devices - 1 - a.stage) + ways.Behind(d);
      turn += Modulo(slot - turn, devices);
      ring.turns[d].push_back(turn);
      if (turn >= static_cast<int>(there.size())) there.resize(turn + 1);
      if (d != ways.Owner(a.stage)) there[turn].insert({d, a.stage});
      if (a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardWeight) {
        added[a.stage][{turn, d}].push_back(a.micro_batch);
      }
    }
  }
  Hops gradients;
  for (int stage = 0; stage < devices; ++stage) {
    std::vector<int>& sums = ring.sums.emplace_back(s.num_micro_batches);
    (ways.ring() ? SumsInRing : SumsInGroups)(ways, stage, added[stage], &gradients, &sums);
  }
  ring.gradients = gradients.Take();
  there.resize(std::max(there.size(), ring.gradients.size()));
  ring.gradients.resize(there.size());
  ring.weights = WeightHops(ways, &there);
  ring.released.resize(there.size());
  for (int t = 0; t < ring.num_turns(); ++t) {
    for (const auto& [device, stage] : there[t]) {
      const bool stays = t + 1 < ring.num_turns() && there[t + 1].count({device, stage}) > 0;
      if (!stays) ring.released[t].push_back({stage, device});
    }
  }
  return ring;
}

}  // namespace pipelab
