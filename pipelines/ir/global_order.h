// Runs the device lists of a schedule against ForEachDependency, without times: the one walk behind
// the validator (does it come to an end?) and Lower (in which global order do messages appear?).
//
//   std::vector<int32_t> done = VisitInGlobalOrder(schedule, [&](int device, int position) {...});
//   // done[d] == schedule.order[d].size() for all d, or the schedule deadlocks.
//
// The order is time-like: devices that can go on take turns, one action a turn (a FIFO queue, no
// heap), so the walk is O(actions + messages). An action of a device group brings about its events
// when all members have run it; that is stricter than rows need, and keeps one order for all
// members.
//
// Actions must be in range and complete (ValidateActions).
#ifndef PIPELAB_PIPELINES_IR_GLOBAL_ORDER_H_
#define PIPELAB_PIPELINES_IR_GLOBAL_ORDER_H_

#include <cstdint>
#include <vector>

#include "pipelines/ir/dependency.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

class GlobalOrderWalk {
 public:
  explicit GlobalOrderWalk(const Schedule& schedule)
      : schedule_(schedule), index_(schedule), state_(index_.size(), kPending) {
    for (bool r : schedule.RecomputedStages()) recomputed_.push_back(r);
    bool groups = false;
    for (const auto& replica : schedule.placement.groups) {
      for (const std::vector<int>& group : replica) groups |= group.size() > 1;
    }
    if (groups) members_done_.resize(index_.size(), 0);
    next_waiter_.resize(schedule.num_devices(), kNobody);
    position_.resize(schedule.num_devices(), 0);
    runnable_.resize(schedule.num_devices());
  }

  template <typename Fn>
  std::vector<int32_t> Run(Fn&& fn) {
    for (int d = 0; d < schedule_.num_devices(); ++d) Advance(d);
    while (num_runnable_ > 0) {
      const int d = runnable_[first_];
      if (++first_ == static_cast<int>(runnable_.size())) first_ = 0;
      --num_runnable_;
      const Action& a = schedule_.order[d][position_[d]];
      fn(d, position_[d]);
      ++position_[d];
      ForEachResult(a, [&](const Event& e) {
        if (e.kind != EventKind::kWeightGradient) Finish(e);  // nothing waits for these
      });
      Advance(d);
    }
    return position_;
  }

 private:
  // An event's state: pending without a waiter, over, or 1 + the first of the devices that wait for
  // it (linked through next_waiter_: a device waits for one event at a time).
  static constexpr int32_t kPending = 0;
  static constexpr int32_t kOver = -1;
  static constexpr int32_t kNobody = 0;

  // Queues the device if its next action can run, else links it to the first event that is missing.
  void Advance(int d) {
    if (position_[d] == static_cast<int32_t>(schedule_.order[d].size())) return;
    const Action& a = schedule_.order[d][position_[d]];
    int64_t missing = -1;
    ForEachDependency(schedule_, recomputed_[a.stage] != 0, a, [&](const Event& e) {
      const int64_t i = index_(e);
      if (missing < 0 && state_[i] != kOver) missing = i;
    });
    if (missing >= 0) {
      next_waiter_[d] = state_[missing];
      state_[missing] = d + 1;
      return;
    }
    int last = first_ + num_runnable_;
    if (last >= static_cast<int>(runnable_.size())) last -= static_cast<int>(runnable_.size());
    runnable_[last] = d;
    ++num_runnable_;
  }

  void Finish(const Event& e) {
    const int64_t i = index_(e);
    if (!members_done_.empty()) {
      const size_t members = schedule_.Group(e.stage, e.micro_batch).size();
      if (++members_done_[i] < members) return;
    }
    int32_t waiter = state_[i];
    state_[i] = kOver;
    while (waiter != kNobody) {
      const int d = waiter - 1;
      waiter = next_waiter_[d];
      Advance(d);
    }
  }

  const Schedule& schedule_;
  const EventIndex index_;
  std::vector<int32_t> state_;          // [event]
  std::vector<uint16_t> members_done_;  // [event]; empty when all groups have one member
  std::vector<char> recomputed_;        // [stage]
  std::vector<int32_t> next_waiter_;    // [device]
  std::vector<int32_t> position_;       // [device]
  std::vector<int32_t> runnable_;       // ring: a device is in it at most once
  int first_ = 0, num_runnable_ = 0;
};

// Returns how many actions each device got through.
template <typename Fn>
std::vector<int32_t> VisitInGlobalOrder(const Schedule& schedule, Fn&& fn) {
  return GlobalOrderWalk(schedule).Run(fn);
}

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_GLOBAL_ORDER_H_
