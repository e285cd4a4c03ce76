#include "pipelines/schedules/guided_order.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "glog/logging.h"
#include "pipelines/schedules/schemes.h"

namespace pipelab {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

// When the inputs of passes arrive.
class Arrivals {
 public:
  Arrivals(const Schedule& schedule, const PassLengths& lengths)
      : schedule_(schedule),
        lengths_(lengths),
        micro_batches_(schedule.num_micro_batches),
        forward_(size_t(schedule.num_stages()) * micro_batches_, kUnknown),
        input_(forward_) {
    std::fill_n(forward_.begin(), micro_batches_, 0);
  }

  int64_t Length(const Action& a) const {
    if (a.kind == ActionKind::kForward) return lengths_.forward[a.stage];
    return a.kind == ActionKind::kBackwardInput
               ? lengths_.recompute[a.stage] + lengths_.backward_input[a.stage]
               : lengths_.backward_weight[a.stage];
  }
  int64_t At(const Action& a) const {
    return (a.kind == ActionKind::kForward ? forward_ : input_)[Index(a.stage, a.micro_batch)];
  }
  // `a` ends: where and when that makes something ready; the device is -1 where it does nothing.
  std::pair<int64_t, int> End(const Action& a, int64_t end) {
    const bool forward = a.kind == ActionKind::kForward;
    if (forward && a.stage + 1 == schedule_.num_stages()) {
      input_[Index(a.stage, a.micro_batch)] = end;
      return {end, DeviceOf(a.stage, a.micro_batch)};
    }
    if (a.kind == ActionKind::kBackwardWeight || (!forward && a.stage == 0)) return {end, -1};
    const int next = forward ? a.stage + 1 : a.stage - 1;
    const int device = DeviceOf(next, a.micro_batch);
    if (device != DeviceOf(a.stage, a.micro_batch))
      end += lengths_.hop[std::min<int>(a.stage, next)];
    (forward ? forward_ : input_)[Index(next, a.micro_batch)] = end;
    return {end, device};
  }

 private:
  size_t Index(int stage, int micro_batch) const {
    return static_cast<size_t>(stage) * micro_batches_ + micro_batch;
  }
  int DeviceOf(int stage, int micro_batch) const {
    const Placement& p = schedule_.placement;
    return p.groups[p.replica_of_micro_batch[micro_batch]][stage][0];
  }

  const Schedule& schedule_;
  const PassLengths& lengths_;
  const int micro_batches_;
  std::vector<int64_t> forward_, input_;  // [stage][micro-batch]
};

class Run {
 public:
  Run(const PassLengths& lengths, const HeldLimits& limits, const GuidedRule& rule,
      const Schedule& guide)
      : limits_(limits), rule_(rule), arrivals_(guide, lengths), devices_(guide.num_devices()) {
    for (size_t d = 0; d < devices_.size(); ++d) {
      Device& device = devices_[d];
      device.guide = &guide.order[d];
      device.done.assign(guide.order[d].size(), false);
      device.order.reserve(guide.order[d].size() / 2 * 3);
      wake_ups_.emplace(0, d);
    }
  }

  std::vector<std::vector<Action>> Finish() && {
    while (!wake_ups_.empty()) {
      const auto [now, d] = wake_ups_.top();
      wake_ups_.pop();
      Device& device = devices_[d];
      if (now < device.free) continue;  // it comes back at its action's end
      if (const Choice choice = Choose(device, now); choice.weight) {
        StartWeight(d, now);
      } else if (choice.at != kNone) {
        StartPass(d, choice.at, now);
      }
    }
    std::vector<std::vector<Action>> order;
    for (size_t d = 0; d < devices_.size(); ++d) {
      Device& device = devices_[d];
      CHECK(device.next == device.guide->size() && device.live == device.held)
          << "the guide's order of F and I cannot run on device " << d;
      order.push_back(std::move(device.order));
    }
    return order;
  }

 private:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();
  struct Device {
    const std::vector<Action>* guide;
    std::vector<char> done;  // [of guide]
    size_t next = 0;         // the first that is not done
    std::vector<Action> order;
    size_t next_weight = 0;  // in order: the I of the next W is not before
    int held = 0, live = 0;  // from F to W and from F to I
    int64_t free = 0;
  };
  struct Choice {
    bool weight = false;
    size_t at = kNone;  // in the guide; else a W or nothing
  };

  Choice Choose(const Device& device, int64_t now) const {
    const std::vector<Action>& guide = *device.guide;
    const bool has_weight = device.held > device.live;
    // Running a later F first, what the guide has before it must fit beside it.
    int live = device.live, most = 0;
    int64_t soonest = kUnknown;
    const size_t ahead = rule_.ahead ? size_t{4} * limits_.activations : 1;
    const size_t end = std::min(guide.size(), device.next + ahead);
    for (size_t i = device.next; i < end; ++i) {
      if (device.done[i]) continue;
      if (i > device.next && has_weight && rule_.weights_first) break;
      const Action& a = guide[i];
      const int64_t arrival = arrivals_.At(a);
      const bool forward = a.kind == ActionKind::kForward;
      const bool fits =
          !forward || (device.live < limits_.activations && most < limits_.activations);
      if (arrival <= now && fits) {
        const bool full = forward ? device.held >= limits_.activations
                                  : device.held - device.live >= limits_.waiting;
        return {full, full ? kNone : i};
      }
      if (fits) soonest = std::min(soonest, arrival);
      live += forward ? 1 : -1;
      most = std::max(most, live);
    }
    if (!has_weight) return {};
    const int64_t length = arrivals_.Length(NextWeight(device).first);
    return {soonest == kUnknown ||
            4 * (now + length - soonest) <= rule_.patience_quarters * length};
  }

  // And where its I is in the order.
  static std::pair<Action, size_t> NextWeight(const Device& device) {
    size_t i = device.next_weight;
    while (device.order[i].kind != ActionKind::kBackwardInput) ++i;
    return {BackwardWeight(device.order[i].stage, device.order[i].micro_batch), i};
  }

  void StartWeight(int d, int64_t now) {
    Device& device = devices_[d];
    const auto [weight, input] = NextWeight(device);
    device.next_weight = input + 1;
    --device.held;
    Start(d, weight, now);
  }

  void StartPass(int d, size_t at, int64_t now) {
    Device& device = devices_[d];
    const Action& a = (*device.guide)[at];
    device.done[at] = true;
    while (device.next < device.guide->size() && device.done[device.next]) ++device.next;
    if (a.kind == ActionKind::kForward) {
      ++device.live;
      ++device.held;
    } else {
      --device.live;
    }
    Start(d, a, now);
  }

  void Start(int d, const Action& a, int64_t now) {
    Device& device = devices_[d];
    device.order.push_back(a);
    device.free = now + arrivals_.Length(a);
    wake_ups_.emplace(device.free, d);
    const auto [time, other] = arrivals_.End(a, device.free);
    if (other >= 0 && other != d) wake_ups_.emplace(time, other);
  }

  const HeldLimits limits_;
  const GuidedRule rule_;
  Arrivals arrivals_;
  std::vector<Device> devices_;
  using WakeUp = std::pair<int64_t, int>;  // time, device
  std::priority_queue<WakeUp, std::vector<WakeUp>, std::greater<>> wake_ups_;
};

constexpr GuidedRule kRules[] = {
    {false, false, 4}, {false, false, 2}, {false, false, 0}, {true, false, 4}, {true, false, 2},
    {true, false, 0},  {true, true, 4},   {true, true, 2},   {true, true, 0},
};

// The most passes of a kind that a device has done before those of another.
int MostBetween(const Schedule& schedule, ActionKind from, ActionKind to) {
  int most = 0;
  for (const std::vector<Action>& list : schedule.order) {
    int between = 0;
    for (const Action& a : list) {
      between += a.kind == from ? 1 : a.kind == to ? -1 : 0;
      most = std::max(most, between);
    }
  }
  return most;
}

}  // namespace

PassLengths PassLengths::Unit(int stages) {
  const std::vector<int64_t> one(stages, 1);
  const std::vector<int64_t> none(stages, 0);
  return {one, none, one, one, none};
}

PassLengths PassLengths::Of(const SchemeParams& params) {
  const PassTimes& times = params.times;
  const size_t stages = times.forward.size();
  PassLengths lengths = Unit(static_cast<int>(stages));
  for (size_t s = 0; s < stages; ++s) {
    lengths.forward[s] = times.forward[s].value();
    lengths.backward_input[s] = times.backward_input[s].value();
    if (params.recompute && !times.recompute.empty()) {
      lengths.recompute[s] = times.recompute[s].value();
    }
    lengths.backward_weight[s] = times.backward_weight[s].value();
    if (!times.hop.empty()) {
      lengths.hop[s] = times.hop[std::min(s, times.hop.size() - 1)].value();
    }
  }
  return lengths;
}

bool PassLengths::AreEqual() const {
  const auto all = [](const std::vector<int64_t>& values, int64_t value) {
    return std::count(values.begin(), values.end(), value) == static_cast<int64_t>(values.size());
  };
  return all(forward, forward[0]) && all(backward_input, forward[0]) &&
         all(backward_weight, forward[0]) && all(recompute, 0) && all(hop, 0);
}

int64_t Makespan(const Schedule& schedule, const PassLengths& lengths) {
  Arrivals arrivals(schedule, lengths);
  const int devices = schedule.num_devices();
  std::vector<size_t> next(devices, 0);
  std::vector<int64_t> free(devices, 0);
  std::vector<int> ready(devices);  // devices whose next action may be able to start
  for (int d = 0; d < devices; ++d) ready[d] = d;
  while (!ready.empty()) {
    const int d = ready.back();
    ready.pop_back();
    for (const std::vector<Action>& list = schedule.order[d]; next[d] < list.size(); ++next[d]) {
      const Action& a = list[next[d]];
      int64_t begin = free[d];
      if (a.kind != ActionKind::kBackwardWeight) {
        const int64_t arrival = arrivals.At(a);
        if (arrival == kUnknown) break;
        const bool recomputes = a.kind == ActionKind::kBackwardInput;
        begin = std::max(begin, arrival - (recomputes ? lengths.recompute[a.stage] : 0));
      }
      free[d] = begin + arrivals.Length(a);
      const int other = arrivals.End(a, free[d]).second;
      if (other >= 0 && other != d) ready.push_back(other);
    }
  }
  for (int d = 0; d < devices; ++d) {
    CHECK_EQ(next[d], schedule.order[d].size()) << "device " << d << " is stuck";
  }
  return *std::max_element(free.begin(), free.end());
}

void RunGuided(const PassLengths& lengths, const HeldLimits& limits, const GuidedRule& rule,
               Schedule* schedule) {
  schedule->order = Run(lengths, limits, rule, *schedule).Finish();
}

void FillGapsWithWeights(Schedule* schedule, int max_activations) {
  RunGuided(PassLengths::Unit(schedule->num_stages()), {max_activations}, {}, schedule);
}

Schedule WithoutWeights(Schedule schedule) {
  for (std::vector<Action>& list : schedule.order) {
    list.erase(
        std::remove_if(list.begin(), list.end(),
                       [](const Action& a) { return a.kind == ActionKind::kBackwardWeight; }),
        list.end());
  }
  return schedule;
}

int HeldFromForwardToInput(const Schedule& guide) {
  return MostBetween(guide, ActionKind::kForward, ActionKind::kBackwardInput);
}

Schedule BestOrder(const PassLengths& lengths, int max_activations,
                   const std::vector<Schedule>& complete, const std::vector<Schedule>& guides) {
  Schedule best;
  int64_t least = kUnknown;
  const bool equal = lengths.AreEqual();  // then patience makes no difference
  const auto waiting = [](const Schedule& schedule) {
    return MostBetween(schedule, ActionKind::kBackwardInput, ActionKind::kBackwardWeight);
  };
  HeldLimits limits;
  limits.activations = max_activations;
  if (!complete.empty() &&
      *std::max_element(lengths.recompute.begin(), lengths.recompute.end()) > 0) {
    limits.waiting = waiting(complete[0]);
  }
  const auto offer = [&](Schedule schedule) {
    const int64_t makespan = Makespan(schedule, lengths);
    if (makespan >= least) return;
    least = makespan;
    best = std::move(schedule);
  };
  for (const Schedule& schedule : complete) {
    if (waiting(schedule) <= limits.waiting) offer(schedule);
  }
  for (const Schedule& guide : guides) {
    if (HeldFromForwardToInput(guide) > max_activations) continue;
    for (const GuidedRule& rule : kRules) {
      if (equal && rule.patience_quarters < 4) continue;
      Schedule schedule = guide;
      RunGuided(lengths, limits, rule, &schedule);
      offer(std::move(schedule));
    }
  }
  return best;
}

}  // namespace pipelab
