#include "pipelines/schedules/early_recompute.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "pipelines/ir/dependency.h"

namespace pipelab {
namespace {

// Plays the order as early as it goes, and moves recomputes on the way.
class EarlyRecomputeRun {
 public:
  EarlyRecomputeRun(const Schedule& schedule, const PassLengths& lengths, int ahead)
      : s_(schedule),
        lengths_(lengths),
        ahead_(ahead),
        recomputed_(schedule.RecomputedStages()),
        index_(schedule),
        over_(index_.size(), kPending),
        devices_(schedule.num_devices()) {}

  std::vector<std::vector<Action>> Play() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int d = 0; d < s_.num_devices(); ++d) {
        while (Advance(d)) moved = true;
      }
    }
    std::vector<std::vector<Action>> order;
    for (int d = 0; d < s_.num_devices(); ++d) {
      CHECK_EQ(devices_[d].order.size(), s_.order[d].size()) << "device " << d << " does not end";
      order.push_back(std::move(devices_[d].order));
    }
    return order;
  }

 private:
  static constexpr int64_t kPending = -1;

  struct Device {
    size_t at = 0;       // what comes next, of the given order
    size_t rebuilt = 0;  // before which all recomputes are done
    int early = 0;       // recomputes that are done before their place
    int64_t now = 0;
    std::vector<Action> order;
  };

  bool Advance(int d) {
    Device& device = devices_[d];
    const std::vector<Action>& list = s_.order[d];
    if (device.at == list.size()) return false;
    const Action& a = list[device.at];
    if (a.kind == ActionKind::kRecompute && device.at < device.rebuilt) {
      --device.early;
      ++device.at;
      return true;
    }
    const int64_t ready = ReadyAt(d, a);
    if (ready == kPending) return false;
    if (ready > device.now && device.early < ahead_ && RebuildUntil(d, ready)) return true;
    Do(d, a, std::max(ready, device.now));
    ++device.at;
    device.rebuilt = std::max(device.rebuilt, device.at);
    return true;
  }

  // The next recompute, if it is over by then.
  bool RebuildUntil(int d, int64_t end) {
    Device& device = devices_[d];
    const std::vector<Action>& list = s_.order[d];
    size_t next = device.rebuilt;
    while (next < list.size() && list[next].kind != ActionKind::kRecompute) ++next;
    if (next == list.size()) return false;
    const int64_t ready = ReadyAt(d, list[next]);
    const int64_t begin = std::max(ready, device.now);
    if (ready == kPending || begin + LengthOf(list[next]) > end) return false;
    Do(d, list[next], begin);
    device.rebuilt = next + 1;
    ++device.early;
    return true;
  }

  void Do(int d, const Action& a, int64_t begin) {
    Device& device = devices_[d];
    device.order.push_back(a);
    device.now = begin + LengthOf(a);
    ForEachResult(a, [&](const Event& e) { over_[index_(e)] = device.now; });
  }

  int64_t ReadyAt(int d, const Action& a) const {
    int64_t ready = 0;
    ForEachDependency(s_, recomputed_[a.stage], a, [&](const Event& e) {
      const int64_t over = over_[index_(e)];
      if (over == kPending || ready == kPending) {
        ready = kPending;
        return;
      }
      const bool here = s_.Group(e.stage, e.micro_batch)[0] == d;
      ready = std::max(ready, over + (here ? 0 : lengths_.hop[std::min<int>(e.stage, a.stage)]));
    });
    return ready;
  }

  int64_t LengthOf(const Action& a) const {
    switch (a.kind) {
      case ActionKind::kForward:
        return lengths_.forward[a.stage];
      case ActionKind::kBackward:
        return lengths_.backward_input[a.stage] + lengths_.backward_weight[a.stage];
      case ActionKind::kBackwardInput:
        return lengths_.backward_input[a.stage];
      case ActionKind::kBackwardWeight:
        return lengths_.backward_weight[a.stage];
      case ActionKind::kRecompute:
        return lengths_.recompute[a.stage];
      case ActionKind::kStep:
      case ActionKind::kOffload:
      case ActionKind::kReload:
        break;
    }
    return 0;
  }

  const Schedule& s_;
  const PassLengths& lengths_;
  const int ahead_;
  const std::vector<bool> recomputed_;
  const EventIndex index_;
  std::vector<int64_t> over_;  // [event]
  std::vector<Device> devices_;
};

}  // namespace

Schedule RecomputeInGaps(Schedule schedule, const PassLengths& lengths, int ahead) {
  std::vector<std::vector<Action>> order = EarlyRecomputeRun(schedule, lengths, ahead).Play();
  schedule.order = std::move(order);
  return schedule;
}

}  // namespace pipelab
