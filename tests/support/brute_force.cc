#include "tests/support/brute_force.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace pipelab {
namespace {

// What a device has done: kind, stage, micro-batch of the stage, slice.
using Key = std::tuple<ActionKind, int, int, int>;

Key KeyOf(const Action& a) { return Key(a.kind, a.stage, a.micro_batch, a.slice); }

// The judge thinks in the smallest micro-batches ("samples") and knows nothing of dependency.h.
class Judge {
 public:
  explicit Judge(const Schedule& s) : s_(s) {
    for (const std::vector<Action>& list : s.order) {
      for (const Action& a : list) {
        if (a.kind == ActionKind::kRecompute) recomputed_.insert(a.stage);
        has_steps_ |= a.kind == ActionKind::kStep;
      }
    }
  }

  bool Valid() {
    for (int d = 0; d < s_.num_devices(); ++d) {
      if (!OnceInItsPlace(d) || !Complete(d) || !VersionsRight(d)) return false;
      if ((s_.stages.ReplayWindow() > 0 || !s_.carried.empty()) && !InOrder(d)) return false;
    }
    return GroupsAgree() && Runs();
  }

 private:
  int CountOf(int stage) const {
    return s_.micro_batches_of_stage.empty() ? s_.num_micro_batches
                                             : s_.micro_batches_of_stage[stage];
  }
  int SizeOf(int stage) const {
    return s_.stages.ReplayWindow() > 0 ? 1 : s_.num_micro_batches / CountOf(stage);
  }
  const std::vector<int>& GroupAt(int stage, int sample) const {
    return s_.placement.groups[s_.placement.replica_of_micro_batch[sample]][stage];
  }
  // [begin, end) of an action's samples.
  std::pair<int, int> Samples(int stage, int micro_batch) const {
    const int size = SizeOf(stage);
    return {micro_batch * size, (micro_batch + 1) * size};
  }
  bool Holds(int d, int stage, int micro_batch) const {
    const std::vector<int>& group = GroupAt(stage, Samples(stage, micro_batch).first);
    return std::count(group.begin(), group.end(), d) > 0;
  }

  bool OnceInItsPlace(int d) const {
    std::set<Key> seen;
    for (const Action& a : s_.order[d]) {
      if (a.kind == ActionKind::kStep) {
        bool held = false;
        for (const auto& replica : s_.placement.groups) {
          held |= std::count(replica[a.stage].begin(), replica[a.stage].end(), d) > 0;
        }
        if (!held || a.micro_batch != 0 || a.slice != 0) return false;
        continue;
      }
      if (!Holds(d, a.stage, a.micro_batch) || !seen.insert(KeyOf(a)).second) return false;
    }
    return true;
  }

  bool InOrder(int d) const {
    std::map<int, int> last;
    for (const Action& a : s_.order[d]) {
      if (a.kind != ActionKind::kForward) continue;
      const auto [at, is_first] = last.emplace(a.stage, a.micro_batch);
      if (!is_first && a.micro_batch < at->second) return false;
      at->second = a.micro_batch;
    }
    return true;
  }

  // Every micro-batch that the device takes part in, whole.
  bool Complete(int d) const {
    std::set<Key> seen;
    for (const Action& a : s_.order[d]) seen.insert(KeyOf(a));
    for (int stage = 0; stage < s_.num_stages(); ++stage) {
      for (int m = 0; m < CountOf(stage); ++m) {
        if (!Holds(d, stage, m)) continue;
        for (int slice = 0; slice < s_.num_slices; ++slice) {
          const auto has = [&](ActionKind k) { return seen.count(Key(k, stage, m, slice)) > 0; };
          const bool b = has(ActionKind::kBackward), i = has(ActionKind::kBackwardInput),
                     w = has(ActionKind::kBackwardWeight);
          const bool rebuilt = recomputed_.count(stage) > 0;
          const bool backward =
              s_.forward_only ? !b && !i && !w && !rebuilt : (b && !i && !w) || (!b && i && w);
          if (!has(ActionKind::kForward) || !backward) return false;
          if (rebuilt != has(ActionKind::kRecompute)) return false;
          const bool offloaded = has(ActionKind::kOffload);
          if (offloaded != has(ActionKind::kReload) || (offloaded && rebuilt)) return false;
        }
      }
    }
    return true;
  }

  // Members of a group split a backward alike, and offload alike.
  bool GroupsAgree() const {
    std::map<std::tuple<int, int, int>, std::set<int>> offload;
    for (int d = 0; d < s_.num_devices(); ++d) {
      for (const Action& a : s_.order[d]) {
        if (a.kind != ActionKind::kOffload) continue;
        offload[std::make_tuple(a.stage, a.micro_batch, a.slice)].insert(d);
      }
    }
    for (const auto& [cell, devices] : offload) {
      const auto [begin, end] = Samples(std::get<0>(cell), std::get<1>(cell));
      if (devices.size() != GroupAt(std::get<0>(cell), begin).size()) return false;
    }
    std::map<std::tuple<int, int, int>, bool> split;
    for (const std::vector<Action>& list : s_.order) {
      for (const Action& a : list) {
        if (a.kind != ActionKind::kBackward && a.kind != ActionKind::kBackwardInput) continue;
        const bool is_split = a.kind == ActionKind::kBackwardInput;
        const auto [at, inserted] =
            split.emplace(std::make_tuple(a.stage, a.micro_batch, a.slice), is_split);
        if (!inserted && at->second != is_split) return false;
      }
    }
    return true;
  }

  // Reads the device's list once: steps count up, passes use what is there, a micro-batch uses one
  // version, and no gradient is left over.
  bool VersionsRight(int d) const {
    std::map<Key, int> forward;
    for (const Action& a : s_.order[d]) {
      if (a.kind == ActionKind::kForward) forward[KeyOf(a)] = a.version;
    }
    std::map<int, int> newest;
    std::set<int> fresh;  // stages with gradients that are in no step yet
    for (const Action& a : s_.order[d]) {
      if (a.kind == ActionKind::kStep) {
        if (a.version != ++newest[a.stage] || fresh.erase(a.stage) == 0) return false;
        continue;
      }
      if (a.version < 0 || a.version > newest[a.stage]) return false;
      if (a.version != forward[Key(ActionKind::kForward, a.stage, a.micro_batch, a.slice)]) {
        return false;
      }
      if (a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardWeight) {
        fresh.insert(a.stage);
      }
    }
    return !has_steps_ || fresh.empty();
  }

  // Whether each member of the group that has the sample has done one of `kinds` on it.
  bool AllDid(std::initializer_list<ActionKind> kinds, int stage, int sample, int slice) const {
    const int m = sample / SizeOf(stage);
    for (int d : GroupAt(stage, sample)) {
      bool did = false;
      for (ActionKind k : kinds) did |= done_[d].count(Key(k, stage, m, slice)) > 0;
      if (!did) return false;
    }
    return true;
  }

  // What a device moves to the host and back, in its own list.
  bool HostReady(int d, const Action& a) const {
    const auto has = [&](ActionKind k) {
      return done_[d].count(Key(k, a.stage, a.micro_batch, a.slice)) > 0;
    };
    if (a.kind == ActionKind::kReload) return has(ActionKind::kOffload);
    if (a.kind != ActionKind::kBackward && a.kind != ActionKind::kBackwardInput) return true;
    for (const Action& other : s_.order[d]) {
      if (KeyOf(other) != Key(ActionKind::kOffload, a.stage, a.micro_batch, a.slice)) continue;
      return has(ActionKind::kReload);
    }
    return true;
  }

  bool Ready(int d, const Action& a) const {
    if (!HostReady(d, a)) return false;
    constexpr auto kB = ActionKind::kBackward, kI = ActionKind::kBackwardInput;
    if (a.kind == ActionKind::kStep) return true;
    const auto [begin, end] = Samples(a.stage, a.micro_batch);
    for (int sample = begin; sample < end; ++sample) {
      const auto forward = [&, sample = sample](int stage, int slice) {
        int at = sample;
        for (const StageGraph::Edge& e : s_.stages.edges) {
          if (!e.output.replay() || e.from != stage || e.to != a.stage) continue;
          at = s_.Outputs(e).Sources(sample).first;
        }
        return AllDid({ActionKind::kForward}, stage, at, slice);
      };
      const auto input = [&](int stage, int slice) {
        return AllDid({kB, kI}, stage, sample, slice);
      };
      if (a.kind == ActionKind::kForward) {
        for (const StageGraph::Edge& e : s_.stages.edges) {
          if (e.to != a.stage) continue;
          if (e.output.list()) {
            const int made = s_.carried[sample];
            if (made >= 0 && !AllDid({ActionKind::kForward}, e.from, made, a.slice)) return false;
          } else if (!forward(e.from, a.slice)) {
            return false;
          }
        }
        if (a.slice > 0 && !forward(a.stage, a.slice - 1)) return false;
        continue;
      }
      if (!forward(a.stage, a.slice)) return false;
      if (a.kind == ActionKind::kRecompute || IsHostTransfer(a.kind)) continue;
      if (a.kind == ActionKind::kBackwardWeight) {
        if (!input(a.stage, a.slice)) return false;
        continue;
      }
      if (recomputed_.count(a.stage) > 0 &&
          !AllDid({ActionKind::kRecompute}, a.stage, sample, a.slice)) {
        return false;
      }
      for (const StageGraph::Edge& e : s_.stages.edges) {
        if (e.from != a.stage || e.gradient.none()) continue;
        const int made = sample - e.gradient.number * (end - begin);
        if (made >= 0 && !AllDid({kB, kI}, e.to, made, a.slice)) return false;
      }
      if (a.slice + 1 < s_.num_slices && !input(a.stage, a.slice + 1)) return false;
    }
    return true;
  }

  // Tries the heads of all devices until none moves; whether every list came to its end.
  bool Runs() {
    done_.resize(s_.num_devices());
    std::vector<size_t> at(s_.num_devices(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int d = 0; d < s_.num_devices(); ++d) {
        while (at[d] < s_.order[d].size() && Ready(d, s_.order[d][at[d]])) {
          done_[d].insert(KeyOf(s_.order[d][at[d]++]));
          moved = true;
        }
      }
    }
    for (int d = 0; d < s_.num_devices(); ++d) {
      if (at[d] < s_.order[d].size()) return false;
    }
    return true;
  }

  const Schedule& s_;
  std::set<int> recomputed_;  // stages
  bool has_steps_ = false;
  std::vector<std::set<Key>> done_;  // [device]
};

}  // namespace

bool BruteForceValid(const Schedule& s) { return Judge(s).Valid(); }

bool Mutate(const CounterRng& rng, uint64_t* n, Schedule* s) {
  const auto below = [&](size_t bound) { return rng.Below((*n)++, bound); };
  std::vector<Action>& list = s->order[below(s->order.size())];
  std::vector<Action>& other = s->order[below(s->order.size())];
  if (list.empty()) return false;
  const size_t at = below(list.size());
  const Action a = list[at];
  const auto place = [](std::vector<Action>& v, size_t i) {
    return v.begin() + static_cast<std::ptrdiff_t>(i);
  };
  switch (below(a.version > 0 ? 5 : 4)) {
    case 0:
      list.erase(place(list, at));
      break;
    case 1:
      list.insert(place(list, below(list.size() + 1)), a);
      break;
    case 2:
      std::swap(list[at], list[below(list.size())]);
      break;
    case 3:
      list.erase(place(list, at));
      other.insert(place(other, below(other.size() + 1)), a);
      break;
    case 4:
      list[at].version = static_cast<int16_t>(a.version + (below(2) == 0 ? 1 : -1));
      break;
  }
  return true;
}

}  // namespace pipelab
