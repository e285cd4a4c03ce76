#include "pipelines/schedules/guided_order.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "glog/logging.h"
#include "pipelines/schedules/guided_run.h"
#include "pipelines/schedules/limited_order.h"
#include "pipelines/schedules/schemes.h"

namespace pipelab {
namespace {

int64_t PassLength(const PassLengths& lengths, const Action& a) {
  if (a.kind == ActionKind::kForward) return lengths.forward[a.stage];
  return a.kind == ActionKind::kBackwardInput
             ? lengths.recompute[a.stage] + lengths.backward_input[a.stage]
             : lengths.backward_weight[a.stage];
}

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

  int64_t At(const Action& a) const {
    return (a.kind == ActionKind::kForward ? forward_ : input_)[Index(a.stage, a.micro_batch)];
  }
  // `a` ends: the device where that makes something ready; -1 where nothing waits for it.
  int End(const Action& a, int64_t end) {
    const bool forward = a.kind == ActionKind::kForward;
    if (forward && a.stage + 1 == schedule_.num_stages()) {
      input_[Index(a.stage, a.micro_batch)] = end;
      return DeviceOf(a.stage, a.micro_batch);
    }
    if (a.kind == ActionKind::kBackwardWeight || (!forward && a.stage == 0)) return -1;
    const int next = forward ? a.stage + 1 : a.stage - 1;
    const int device = DeviceOf(next, a.micro_batch);
    if (device != DeviceOf(a.stage, a.micro_batch))
      end += lengths_.hop[std::min<int>(a.stage, next)];
    (forward ? forward_ : input_)[Index(next, a.micro_batch)] = end;
    return device;
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

// When a device's actions are over if they wait for nothing but their input: what a makespan is of.
// One clock has the lengths' hops, the other OrderLimits::hop at most.
struct Clocks {
  int64_t own = 0, least = 0;
};

class Run {
 public:
  // Gives up where the order's makespan cannot be less than `limit`, or it is beyond `of_order`.
  Run(const Guide& guide, const HeldLimits& limits, const GuidedRule& rule, int64_t limit,
      const OrderLimits& of_order)
      : guide_(guide),
        limits_(limits),
        rule_(rule),
        limit_(limit),
        too_long_(of_order.too_long == Nanoseconds(0) ? kUnknown : of_order.too_long.value()),
        least_hop_(of_order.hop.value()),
        memory_(of_order, guide.schedule.num_devices()),
        devices_(guide.schedule.num_devices()),
        queues_(guide.queues.size()),
        wake_ups_(devices_.size(), 0) {
    for (size_t d = 0; d < devices_.size(); ++d) {
      Device& device = devices_[d];
      device.guide = &guide.schedule.order[d];
      device.held_by = guide.held_by[d];
      device.left = guide.work[d];
      device.order.reserve(device.guide->size() / 2 * 3);
      device.weights.reserve(device.guide->size() / 2);
    }
    for (size_t q = 0; q < queues_.size(); ++q) {
      const PassQueue& passes = guide.queues[q];
      queues_[q].inputs.resize(passes.places.size());
      if (q % 2 == 0 && passes.stage == 0) queues_[q].arrived = passes.places.size();
      SetHead(q);
    }
  }

  // The order's makespan; kUnknown where it gave up.
  int64_t Finish(std::vector<std::vector<Action>>* order) {
    for (int64_t now = 0; now != kUnknown; now = wake_ups_.time()) {
      const int d = static_cast<int>(wake_ups_.device());
      const Choice choice = Choose(d, now);
      if (choice.weight) {
        StartWeight(d, now);
      } else if (choice.queue >= 0) {
        StartPass(d, choice.queue, now);
      } else {
        wake_ups_.Set(d, NextArrival(d, now));
      }
      if (late_ || beyond_ != Beyond::kNothing) return kUnknown;
    }
    order->clear();
    int64_t makespan = 0;
    for (size_t d = 0; d < devices_.size(); ++d) {
      Device& device = devices_[d];
      CHECK(device.next == device.guide->size() && device.live == device.held)
          << "the guide's order of F and I cannot run on device " << d;
      order->push_back(std::move(device.order));
      makespan = std::max(makespan, device.end.own);
    }
    return makespan;
  }
  // The limit for which it gave up, if it did.
  Beyond beyond() const { return beyond_; }
  const PatienceRange& patience() const { return patience_; }

 private:
  struct Input {
    int64_t arrival = 0;
    Clocks clocks;
  };
  struct Queue {
    // Of the first that is not done: its place in the guide and when its input arrives, if that is
    // known.
    int32_t head = std::numeric_limits<int32_t>::max();
    int64_t arrival = kUnknown;
    size_t done = 0, arrived = 0;
    std::vector<Input> inputs;
  };
  struct Device {
    const std::vector<Action>* guide;
    std::vector<int8_t> held_by;  // [place] 0 once it is done
    size_t next = 0;              // the first that is not done
    std::vector<Action> order;
    std::vector<Action> weights;  // of its I so far, in their order
    size_t next_weight = 0;
    int held = 0, live = 0;  // from F to W and from F to I
    int64_t free = 0;
    Clocks end;
    int64_t left = 0;  // work that is still to do
  };
  struct Choice {
    bool weight = false;
    int queue = -1;  // whose head; else a W or nothing
  };
  struct Startable {
    int queue = -1;              // the first of the guide that can start
    int64_t soonest = kUnknown;  // the soonest arrival where none can
  };

  void SetHead(size_t q) {
    Queue& queue = queues_[q];
    const bool known = queue.done < queue.arrived;
    const std::vector<int32_t>& places = guide_.queues[q].places;
    queue.head = known ? places[queue.done] : std::numeric_limits<int32_t>::max();
    queue.arrival = known ? queue.inputs[queue.done].arrival : kUnknown;
  }

  // Up to which place an F may come early: what is taken early must fit beside all that the guide
  // has before it.
  int32_t LastThatFits(const Device& device, int32_t last) const {
    int more = limits_.activations - device.live;
    for (int32_t at = static_cast<int32_t>(device.next); at < last; ++at) {
      more -= device.held_by[at];
      if (more <= 0) return at + 1;
    }
    return last;
  }

  Startable FirstToStart(int d, int64_t now) const {
    const Device& device = devices_[d];
    const bool only_next = !rule_.ahead || (rule_.weights_first && device.held > device.live);
    const size_t window = only_next ? 1 : size_t{4} * limits_.activations;
    const int32_t end = static_cast<int32_t>(std::min(device.guide->size(), device.next + window));
    Startable found;
    int32_t first = end;
    const auto look = [&](const std::vector<int>& queues, int32_t last) {
      for (const int q : queues) {
        const Queue& queue = queues_[q];
        if (queue.head >= last) continue;
        found.soonest = std::min(found.soonest, queue.arrival);
        if (queue.arrival > now || queue.head >= first) continue;
        first = queue.head;
        found.queue = q;
      }
    };
    if (device.live < limits_.activations) {
      const std::vector<int>& queues = guide_.queues_of[0][d];
      int32_t farthest = static_cast<int32_t>(device.next);
      for (const int q : queues) {
        if (queues_[q].head < end) farthest = std::max(farthest, queues_[q].head);
      }
      look(queues, only_next ? end : LastThatFits(device, std::min(end, farthest + 1)));
    }
    look(guide_.queues_of[1][d], first);
    return found;
  }

  Choice Choose(int d, int64_t now) {
    const Device& device = devices_[d];
    if (device.next == device.guide->size() && device.held == device.live) return {};
    const Startable first = FirstToStart(d, now);
    if (first.queue >= 0) {
      const bool full = first.queue % 2 == 0 ? device.held >= limits_.activations
                                             : device.held - device.live >= limits_.waiting;
      return {full, full ? -1 : first.queue};
    }
    if (device.held == device.live) return {};
    return {first.soonest == kUnknown ||
            HasPatience(Length(device.weights[device.next_weight]), now, first.soonest)};
  }

  // Whether what arrives at `soonest` may wait for a W of that length.
  bool HasPatience(int64_t length, int64_t now, int64_t soonest) {
    int64_t needed = 0;  // quarters
    const int64_t waits = 4 * (now + length - soonest);
    if (waits > 0) needed = length == 0 ? kUnknown : (waits + length - 1) / length;
    const bool has = needed <= rule_.patience_quarters;
    if (has) {
      patience_.least = std::max(patience_.least, needed);
    } else {
      patience_.below = std::min(patience_.below, needed);
    }
    return has;
  }

  // Of what is first in a queue and is known: later ones arrive later.
  int64_t NextArrival(int d, int64_t now) const {
    int64_t next = kUnknown;
    for (const auto& queues_of : guide_.queues_of) {
      for (const int q : queues_of[d]) {
        const int64_t arrival = queues_[q].arrival;
        if (arrival > now) next = std::min(next, arrival);
      }
    }
    return next;
  }

  int64_t Length(const Action& a) const { return PassLength(guide_.lengths, a); }

  void StartWeight(int d, int64_t now) {
    Device& device = devices_[d];
    const Action weight = device.weights[device.next_weight++];
    --device.held;
    Start(d, weight, -1, now);
  }

  void StartPass(int d, int q, int64_t now) {
    Device& device = devices_[d];
    Queue& queue = queues_[q];
    const Action& a = (*device.guide)[queue.head];
    device.held_by[queue.head] = 0;
    while (device.next < device.guide->size() && device.held_by[device.next] == 0) ++device.next;
    const Clocks& input = queue.inputs[queue.done].clocks;
    int64_t recompute = 0;
    if (a.kind == ActionKind::kForward) {
      ++device.live;
      ++device.held;
    } else {
      --device.live;
      device.weights.push_back(BackwardWeight(a.stage, a.micro_batch));
      recompute = guide_.lengths.recompute[a.stage];
    }
    device.end.own = std::max(device.end.own, input.own - recompute);
    device.end.least = std::max(device.end.least, input.least - recompute);
    ++queue.done;
    SetHead(q);
    Start(d, a, guide_.NextOf(a), now);
  }

  // And says when the input of queue `next` arrives.
  void Start(int d, const Action& a, int next, int64_t now) {
    Device& device = devices_[d];
    const int64_t length = Length(a);
    device.order.push_back(a);
    device.free = now + length;
    device.left -= length;
    device.end.own += length;
    device.end.least += length;
    late_ = late_ || device.end.own + device.left >= limit_;
    if (device.end.least + device.left >= too_long_) beyond_ = Beyond::kTime;
    if (!memory_.Fits(d, a)) beyond_ = Beyond::kMemory;
    wake_ups_.Set(d, device.free);
    if (next >= 0) Send(d, a, next);
  }

  void Send(int d, const Action& a, int next) {
    const Device& device = devices_[d];
    const PassQueue& passes = guide_.queues[next];
    Queue& queue = queues_[next];
    const int64_t hop =
        passes.device == d ? 0 : guide_.lengths.hop[std::min<int>(a.stage, passes.stage)];
    queue.inputs[queue.arrived] = {
        device.free + hop, {device.end.own + hop, device.end.least + std::min(hop, least_hop_)}};
    if (queue.done == queue.arrived++) SetHead(next);
    // One that is busy until then comes back at its action's end.
    const int64_t time = std::max(device.free + hop, devices_[passes.device].free);
    if (time < wake_ups_.Of(passes.device)) wake_ups_.Set(passes.device, time);
  }

  const Guide& guide_;
  const HeldLimits limits_;
  const GuidedRule rule_;
  const int64_t limit_, too_long_, least_hop_;
  FreeMemory memory_;
  std::vector<Device> devices_;
  std::vector<Queue> queues_;  // as in guide_
  Earliest wake_ups_;
  bool late_ = false;
  Beyond beyond_ = Beyond::kNothing;
  PatienceRange patience_;
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
      free[d] = begin + PassLength(lengths, a);
      const int other = arrivals.End(a, free[d]);
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
  GuidedOrder made = RunGuide(Guide(*schedule, lengths), limits, rule, kUnknown);
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

Guide::Guide(const Schedule& schedule, const PassLengths& lengths)
    : schedule(schedule), lengths(lengths) {
  const int stages = schedule.num_stages(), devices = schedule.num_devices();
  const Placement& placement = schedule.placement;
  queues.resize(size_t{2} * placement.num_replicas() * stages);
  for (auto& of_device : queues_of) of_device.resize(devices);
  for (size_t q = 0; q < queues.size(); ++q) {
    const int stage = static_cast<int>(q / 2) % stages;
    queues[q].stage = stage;
    queues[q].device = placement.groups[q / 2 / stages][stage][0];
    queues_of[q % 2][queues[q].device].push_back(static_cast<int>(q));
  }
  held_by.resize(devices);
  work.resize(devices);
  std::vector<int> last(queues.size(), -1);
  for (int d = 0; d < devices; ++d) {
    for (const Action& a : schedule.order[d]) {
      const int q = QueueOf(a);
      CHECK_LT(last[q], a.micro_batch) << "stage " << a.stage << " on device " << d;
      last[q] = a.micro_batch;
      const bool forward = a.kind == ActionKind::kForward;
      queues[q].places.push_back(static_cast<int32_t>(held_by[d].size()));
      held_by[d].push_back(forward ? 1 : -1);
      work[d] += PassLength(lengths, a);
      if (!forward) work[d] += lengths.backward_weight[a.stage];
    }
  }
}

GuidedOrder RunGuide(const Guide& guide, const HeldLimits& limits, const GuidedRule& rule,
                     int64_t limit, const OrderLimits& of_order) {
  Run run(guide, limits, rule, limit, of_order);
  GuidedOrder made;
  made.makespan = run.Finish(&made.order);
  made.beyond = run.beyond();
  made.patience = run.patience();
  return made;
}

Beyond BeyondLimits(const OrderLimits& limits, const Schedule& complete,
                    const PassLengths& lengths) {
  FreeMemory memory(limits, complete.num_devices());
  for (int d = 0; d < complete.num_devices() && !limits.free.empty(); ++d) {
    for (const Action& a : complete.order[d]) {
      if (!memory.Fits(d, a)) return Beyond::kMemory;
    }
  }
  if (limits.too_long == Nanoseconds(0)) return Beyond::kNothing;
  PassLengths least = lengths;
  for (int64_t& hop : least.hop) hop = std::min(hop, limits.hop.value());
  return Makespan(complete, least) >= limits.too_long.value() ? Beyond::kTime : Beyond::kNothing;
}

int HeldFromForwardToInput(const Schedule& guide) {
  return MostBetween(guide, ActionKind::kForward, ActionKind::kBackwardInput);
}

int HeldFromInputToWeight(const Schedule& complete) {
  return MostBetween(complete, ActionKind::kBackwardInput, ActionKind::kBackwardWeight);
}

}  // namespace pipelab
