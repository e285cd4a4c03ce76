#include "pipelines/ir/brute_force.h"

#include <cstddef>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "pipelines/ir/dependency.h"

namespace pipelab {
namespace {

using Key = std::tuple<int, int, int, int>;  // kind, stage, micro-batch, slice

Key KeyOf(const Event& e) { return Key(static_cast<int>(e.kind), e.stage, e.micro_batch, e.slice); }

// Every action once, on its device, and every micro-batch whole.
bool Complete(const Schedule& s, const std::set<int>& recomputed) {
  std::set<Key> seen;
  for (int d = 0; d < s.num_devices(); ++d) {
    for (const Action& a : s.order[d]) {
      if (s.placement.Group(a.stage, a.micro_batch)[0] != d) return false;
      if (!seen.insert({static_cast<int>(a.kind), a.stage, a.micro_batch, a.slice}).second) {
        return false;
      }
    }
  }
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    for (int m = 0; m < s.num_micro_batches; ++m) {
      for (int slice = 0; slice < s.num_slices; ++slice) {
        const auto has = [&](ActionKind k) {
          return seen.count({static_cast<int>(k), stage, m, slice}) > 0;
        };
        const bool b = has(ActionKind::kBackward), i = has(ActionKind::kBackwardInput),
                   w = has(ActionKind::kBackwardWeight);
        const bool backward = (b && !i && !w) || (!b && i && w);
        if (!has(ActionKind::kForward) || !backward) return false;
        if ((recomputed.count(stage) > 0) != has(ActionKind::kRecompute)) return false;
      }
    }
  }
  return true;
}

// Whether every device gets to the end of its list.
bool Runs(const Schedule& s, const std::set<int>& recomputed) {
  std::set<Key> over;
  std::vector<size_t> at(s.num_devices(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int d = 0; d < s.num_devices(); ++d) {
      while (at[d] < s.order[d].size()) {
        const Action& a = s.order[d][at[d]];
        bool ready = true;
        ForEachDependency(s.stages, s.num_slices, recomputed.count(a.stage) > 0, a,
                          [&](const Event& e) { ready &= over.count(KeyOf(e)) > 0; });
        if (!ready) break;
        ForEachResult(a, [&](const Event& e) { over.insert(KeyOf(e)); });
        ++at[d];
        moved = true;
      }
    }
  }
  for (int d = 0; d < s.num_devices(); ++d) {
    if (at[d] < s.order[d].size()) return false;
  }
  return true;
}

}  // namespace

bool BruteForceKnows(const Schedule& s) {
  for (const auto& replica : s.placement.groups) {
    for (const std::vector<int>& group : replica) {
      if (group.size() > 1) return false;
    }
  }
  for (const std::vector<Action>& list : s.order) {
    for (const Action& a : list) {
      if (a.kind == ActionKind::kStep || a.version != 0) return false;
    }
  }
  return true;
}

bool BruteForceValid(const Schedule& s) {
  std::set<int> recomputed;
  for (const std::vector<Action>& list : s.order) {
    for (const Action& a : list) {
      if (a.kind == ActionKind::kRecompute) recomputed.insert(a.stage);
    }
  }
  return Complete(s, recomputed) && Runs(s, recomputed);
}

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
  switch (below(4)) {
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
  }
  return true;
}

}  // namespace pipelab
