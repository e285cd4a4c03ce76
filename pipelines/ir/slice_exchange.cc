#include "pipelines/ir/slice_exchange.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/ir/dependency.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

bool IsForward(const Action& a) { return a.kind == ActionKind::kForward; }
bool IsBackward(const Action& a) {
  return a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardInput;
}

struct PassPlace {
  int device = 0;
  int32_t position = 0;
};

// Where a device is: its place in the pipeline, and which member of its group it is.
struct Seat {
  int place = -1, member = 0;
};

absl::StatusOr<std::vector<Seat>> SeatsOf(const Schedule& s) {
  const auto error = [&](const auto&... words) {
    return absl::InvalidArgumentError(absl::StrCat("slice_exchange: ", s.name, words...));
  };
  if (s.num_slices < 2) return error(" has no token slices; take seq1f1b");
  if (s.placement.num_replicas() > 1 || !s.micro_batches_of_stage.empty() || s.forward_only) {
    return error(": must be training of one replica with micro-batches of one size");
  }
  const auto& groups = s.placement.groups[0];
  std::vector<Seat> seats(s.num_devices());
  int places = 0;
  for (; places < s.num_stages() && seats[groups[places][0]].place < 0; ++places) {
    for (size_t j = 0; j < groups[places].size(); ++j) {
      seats[groups[places][j]] = {places, static_cast<int>(j)};
    }
  }
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    if (groups[stage] != groups[stage % std::max(places, 1)] ||
        groups[stage].size() != groups[0].size()) {
      return error(": its stages are not in turn on the devices");
    }
  }
  return seats;
}

// Passes that may be under way at a time, in the order of devices.
using Slots = std::vector<std::vector<PassPlace>>;

Slots SlotsOf(const Schedule& s, const std::vector<Seat>& seats, int every) {
  // Class and member of the devices, direction, number.
  std::map<std::tuple<int, int, bool, int>, std::vector<PassPlace>> slots;
  for (int d = 0; d < s.num_devices(); ++d) {
    const int line = seats[d].place / every;
    int forwards = 0, backwards = 0;
    for (size_t i = 0; i < s.order[d].size(); ++i) {
      const Action& a = s.order[d][i];
      if (!IsForward(a) && !IsBackward(a)) continue;
      const int number = IsForward(a) ? forwards++ + line : backwards++ - line;
      slots[{seats[d].place % every, seats[d].member, IsBackward(a), number}].push_back(
          {d, static_cast<int32_t>(i)});
    }
  }
  Slots all;
  all.reserve(slots.size());
  for (auto& [key, passes] : slots) all.push_back(std::move(passes));
  return all;
}

void AddSlotExchanges(const Schedule& s, const std::vector<PassPlace>& slot, int32_t number,
                      SliceExchangePlan* plan) {
  std::vector<int> chunks;
  for (const PassPlace& p : slot) chunks.push_back(s.order[p.device][p.position].slice);
  const std::vector<std::vector<int>> moved = SpreadChunks(chunks);
  std::vector<PassExchange> exchanges(slot.size());
  for (size_t giver = 0; giver < slot.size(); ++giver) {
    int first = 0;
    for (size_t helper = 0; helper < slot.size(); ++helper) {
      const int count = moved[giver][helper];
      if (count == 0) continue;
      const auto share = [&](const PassPlace& other) {
        return ChunkShare{static_cast<int16_t>(other.device), static_cast<int16_t>(first),
                          static_cast<int16_t>(count)};
      };
      exchanges[giver].given.push_back(share(slot[helper]));
      exchanges[helper].received.push_back(share(slot[giver]));
      first += count;
    }
  }
  for (size_t i = 0; i < slot.size(); ++i) {
    if (exchanges[i].given.empty() && exchanges[i].received.empty()) continue;
    const PassPlace& p = slot[i];
    plan->of_action[p.device][p.position] = static_cast<int32_t>(plan->passes.size());
    exchanges[i].action = s.order[p.device][p.position];
    exchanges[i].slot = number;
    plan->passes.push_back(std::move(exchanges[i]));
  }
}

// Runs the device lists without times, the passes of a slot together.
class SlotWalk {
 public:
  SlotWalk(const Schedule& s, const SliceExchangePlan& plan)
      : s_(s),
        plan_(plan),
        index_(s),
        recomputed_(s.RecomputedStages()),
        missing_(index_.size(), 0),
        position_(s.num_devices(), 0),
        waits_(s.num_devices(), false) {
    for (const PassExchange& p : plan.passes) {
      if (p.slot >= static_cast<int32_t>(members_.size())) members_.resize(p.slot + 1, 0);
      ++members_[p.slot];
    }
    here_.resize(members_.size());
    for (const std::vector<Action>& list : s.order) {
      for (const Action& a : list) ForEachResult(a, [&](const Event& e) { ++missing_[index_(e)]; });
    }
  }

  bool ComesToAnEnd() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int d = 0; d < s_.num_devices(); ++d) {
        while (Advance(d)) moved = true;
      }
    }
    for (int d = 0; d < s_.num_devices(); ++d) {
      if (position_[d] < s_.order[d].size()) return false;
    }
    return true;
  }

 private:
  // Whether the device got through an action.
  bool Advance(int d) {
    if (waits_[d] || position_[d] == s_.order[d].size()) return false;
    const Action& a = s_.order[d][position_[d]];
    bool ready = true;
    ForEachDependency(s_, recomputed_[a.stage], a,
                      [&](const Event& e) { ready &= missing_[index_(e)] == 0; });
    if (!ready) return false;
    const int32_t pass = plan_.of_action[d][position_[d]];
    if (pass < 0) {
      Finish(d);
      return true;
    }
    const int32_t slot = plan_.passes[pass].slot;
    here_[slot].push_back(d);
    waits_[d] = true;
    if (static_cast<int>(here_[slot].size()) < members_[slot]) return false;
    for (const int other : here_[slot]) {
      waits_[other] = false;
      Finish(other);
    }
    return true;
  }
  void Finish(int d) {
    const Action& a = s_.order[d][position_[d]++];
    ForEachResult(a, [&](const Event& e) { --missing_[index_(e)]; });
  }

  const Schedule& s_;
  const SliceExchangePlan& plan_;
  const EventIndex index_;
  const std::vector<bool> recomputed_;
  std::vector<int32_t> missing_;        // [event] members of a group that have not made it
  std::vector<size_t> position_;        // [device]
  std::vector<bool> waits_;             // [device] for the others of its slot
  std::vector<int> members_;            // [slot]
  std::vector<std::vector<int>> here_;  // [slot]
};

}  // namespace

int PassExchange::Chunks() const {
  int chunks = action.slice;
  for (const ChunkShare& share : given) chunks -= share.count;
  for (const ChunkShare& share : received) chunks += share.count;
  return chunks;
}

std::vector<std::vector<int>> SpreadChunks(std::vector<int> chunks) {
  std::vector<std::vector<int>> moved(chunks.size(), std::vector<int>(chunks.size()));
  while (!chunks.empty()) {
    const auto least = std::min_element(chunks.begin(), chunks.end());
    const auto most = std::max_element(chunks.begin(), chunks.end());
    if (*most - *least < 2) break;
    --*most;
    ++*least;
    ++moved[most - chunks.begin()][least - chunks.begin()];
  }
  return moved;
}

absl::StatusOr<SliceExchangePlan> PlanSliceExchange(const Schedule& s) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<Seat> seats, SeatsOf(s));
  for (const int every : {1, 2}) {
    SliceExchangePlan plan;
    plan.every = every;
    for (const std::vector<Action>& list : s.order) plan.of_action.emplace_back(list.size(), -1);
    int32_t number = 0;
    for (const std::vector<PassPlace>& slot : SlotsOf(s, seats, every)) {
      AddSlotExchanges(s, slot, number++, &plan);
    }
    if (plan.passes.empty()) continue;
    if (SlotWalk(s, plan).ComesToAnEnd()) return plan;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "slice_exchange: ", s.name, " on ", s.num_devices(),
      " devices: no two of them have unequal passes of one kind at a time; take more devices or "
      "slices, or interleaved_seq1f1b"));
}

}  // namespace pipelab
