#include "pipelines/schedules/guided_order.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "absl/types/optional.h"
#include "glog/logging.h"
#include "pipelines/schedules/guided_run.h"
#include "pipelines/schedules/limited_order.h"
#include "pipelines/schedules/schemes.h"

namespace pipelab {
namespace {

class Run {
 public:
  // Gives up where the order's makespan cannot be less than `limit`, or it is beyond `of_order`.
  Run(const PassLengths& lengths, const HeldLimits& limits, const GuidedRule& rule,
      const Schedule& guide, int64_t limit, const OrderLimits& of_order)
      : limits_(limits),
        rule_(rule),
        limit_(limit),
        arrivals_(guide, lengths),
        played_(guide, lengths),
        order_limits_(of_order, guide, lengths),
        devices_(guide.num_devices()),
        place_(2 * size_t(guide.num_stages()) * guide.num_micro_batches),
        micro_batches_(guide.num_micro_batches) {
    for (size_t d = 0; d < devices_.size(); ++d) {
      Device& device = devices_[d];
      device.guide = &guide.order[d];
      device.done.assign(guide.order[d].size(), false);
      device.order.reserve(guide.order[d].size() / 2 * 3);
      if (rule.ahead) device.to_do.emplace(guide.order[d]);
      for (size_t i = 0; i < guide.order[d].size(); ++i) {
        const Action& a = guide.order[d][i];
        PlaceOf(a) = static_cast<int32_t>(i);
        device.left += arrivals_.Length(a);
        if (a.kind == ActionKind::kBackwardInput) {
          device.left += arrivals_.Length(BackwardWeight(a.stage, a.micro_batch));
        } else if (a.stage == 0) {
          device.come[0].push_back({static_cast<int32_t>(i), 0});
        }
      }
      wake_ups_.emplace(0, d);
    }
  }

  // The order's makespan; kUnknown where it gave up.
  int64_t Finish(std::vector<std::vector<Action>>* order) {
    while (!wake_ups_.empty() && !late_ && beyond_ == Beyond::kNothing) {
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
    if (late_ || beyond_ != Beyond::kNothing) return kUnknown;
    order->clear();
    int64_t makespan = 0;
    for (size_t d = 0; d < devices_.size(); ++d) {
      Device& device = devices_[d];
      CHECK(device.next == device.guide->size() && device.live == device.held)
          << "the guide's order of F and I cannot run on device " << d;
      order->push_back(std::move(device.order));
      makespan = std::max(makespan, device.end);
    }
    return makespan;
  }
  // The limit for which it gave up, if it did.
  Beyond beyond() const { return beyond_; }

 private:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();
  // An action of the guide whose input arrives at that time.
  struct Coming {
    int32_t at = 0;
    int64_t arrival = 0;

    friend bool operator<(const Coming& a, const Coming& b) { return a.at < b.at; }
  };
  struct Device {
    const std::vector<Action>* guide;
    std::vector<char> done;  // [of guide]
    size_t next = 0;         // the first that is not done
    // Of the guide, ascending: F, and I, that are to be done and whose arrival is known.
    std::vector<Coming> come[2];
    absl::optional<ToDo> to_do;  // where it looks ahead
    std::vector<Action> order;
    std::vector<Action> weights;  // of its I so far, in their order
    size_t next_weight = 0;
    int held = 0, live = 0;  // from F to W and from F to I
    int64_t free = 0;
    // As in Makespan, where nothing waits but for its input: the end, and what is still to do.
    int64_t end = 0, left = 0;
  };
  struct Choice {
    bool weight = false;
    size_t at = kNone;  // in the guide; else a W or nothing
  };

  int32_t& PlaceOf(const Action& a) {
    const bool input = a.kind == ActionKind::kBackwardInput;
    return place_[(size_t{2} * a.stage + input) * micro_batches_ + a.micro_batch];
  }

  // The first of the guide that can start, and the soonest arrival where none can. What is taken
  // early must fit beside all that the guide has before it.
  std::pair<size_t, int64_t> FirstToStart(const Device& device, int64_t now) const {
    const std::vector<Action>& guide = *device.guide;
    const bool only_next = !rule_.ahead || (rule_.weights_first && device.held > device.live);
    const size_t end =
        std::min(guide.size(), device.next + (only_next ? 1 : size_t{4} * limits_.activations));
    size_t first = kNone;
    int64_t soonest = kUnknown;
    for (const bool forward : {true, false}) {
      const std::vector<Coming>& come = device.come[forward ? 0 : 1];
      size_t last = std::min(end, first);
      if (come.empty() || come[0].at >= static_cast<int64_t>(last)) continue;
      if (forward && device.live >= limits_.activations) continue;
      if (forward && !only_next) {
        last = std::min(last, device.to_do->FirstToReach(limits_.activations - device.live) + 1);
      }
      for (const Coming& next : come) {
        if (next.at >= static_cast<int64_t>(last)) break;
        soonest = std::min(soonest, next.arrival);
        if (next.arrival > now) continue;
        first = next.at;
        break;
      }
    }
    return {first, soonest};
  }

  Choice Choose(const Device& device, int64_t now) const {
    if (device.next == device.guide->size() && device.held == device.live) return {};
    const auto [first, soonest] = FirstToStart(device, now);
    if (first != kNone) {
      const bool full = (*device.guide)[first].kind == ActionKind::kForward
                            ? device.held >= limits_.activations
                            : device.held - device.live >= limits_.waiting;
      return {full, full ? kNone : first};
    }
    if (device.held == device.live) return {};
    const int64_t length = arrivals_.Length(NextWeight(device));
    return {soonest == kUnknown ||
            4 * (now + length - soonest) <= rule_.patience_quarters * length};
  }

  static const Action& NextWeight(const Device& device) {
    return device.weights[device.next_weight];
  }

  void StartWeight(int d, int64_t now) {
    Device& device = devices_[d];
    const Action weight = NextWeight(device);
    ++device.next_weight;
    --device.held;
    Start(d, weight, now);
  }

  void StartPass(int d, size_t at, int64_t now) {
    Device& device = devices_[d];
    const Action& a = (*device.guide)[at];
    const bool forward = a.kind == ActionKind::kForward;
    std::vector<Coming>& come = device.come[forward ? 0 : 1];
    come.erase(std::lower_bound(come.begin(), come.end(), Coming{static_cast<int32_t>(at)}));
    if (device.to_do.has_value()) device.to_do->Done(at);
    device.done[at] = true;
    while (device.next < device.guide->size() && device.done[device.next]) ++device.next;
    if (forward) {
      ++device.live;
      ++device.held;
    } else {
      --device.live;
      device.weights.push_back(BackwardWeight(a.stage, a.micro_batch));
    }
    Start(d, a, now);
  }

  void Start(int d, const Action& a, int64_t now) {
    Device& device = devices_[d];
    const int64_t length = arrivals_.Length(a);
    device.order.push_back(a);
    device.free = now + length;
    device.left -= length;
    device.end = played_.Add(d, a);
    late_ = late_ || device.end + device.left >= limit_;
    beyond_ = std::max(beyond_, order_limits_.Add(d, a, device.end, device.left));
    wake_ups_.emplace(device.free, d);
    const auto [time, next] = arrivals_.End(a, device.free);
    if (next.device < 0) return;
    Device& other = devices_[next.device];
    const Coming coming = {PlaceOf(next.action), time};
    std::vector<Coming>& come = other.come[next.action.kind == ActionKind::kForward ? 0 : 1];
    come.insert(std::upper_bound(come.begin(), come.end(), coming), coming);
    // One that is busy until then comes back at its action's end.
    if (next.device != d && other.free <= time) wake_ups_.emplace(time, next.device);
  }

  const HeldLimits limits_;
  const GuidedRule rule_;
  const int64_t limit_;
  Arrivals arrivals_;
  Played played_;
  LimitedOrder order_limits_;
  std::vector<Device> devices_;
  std::vector<int32_t> place_;  // [stage][F or I][micro-batch] in its device's guide
  const int micro_batches_;
  bool late_ = false;
  Beyond beyond_ = Beyond::kNothing;
  using WakeUp = std::pair<int64_t, int>;  // time, device
  std::priority_queue<WakeUp, std::vector<WakeUp>, std::greater<>> wake_ups_;
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
      const int other = arrivals.End(a, free[d]).second.device;
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
  GuidedOrder made = RunGuide(lengths, limits, rule, *schedule, kUnknown);
  schedule->order = std::move(made.order);
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

GuidedOrder RunGuide(const PassLengths& lengths, const HeldLimits& limits, const GuidedRule& rule,
                     const Schedule& guide, int64_t limit, const OrderLimits& of_order) {
  Run run(lengths, limits, rule, guide, limit, of_order);
  GuidedOrder made;
  made.makespan = run.Finish(&made.order);
  made.beyond = run.beyond();
  return made;
}

int HeldFromForwardToInput(const Schedule& guide) {
  return MostBetween(guide, ActionKind::kForward, ActionKind::kBackwardInput);
}

int HeldFromInputToWeight(const Schedule& complete) {
  return MostBetween(complete, ActionKind::kBackwardInput, ActionKind::kBackwardWeight);
}

}  // namespace pipelab
