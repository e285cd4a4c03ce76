#include "pipelines/schedules/guided_run.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "glog/logging.h"
#include "pipelines/schedules/earliest.h"
#include "pipelines/schedules/limited_order.h"
#include "pipelines/schedules/schemes.h"

namespace pipelab {
namespace {

// When a device's actions are over if they wait for nothing but their input: what a makespan is of.
// One clock has the lengths' hops, the other OrderLimits::hop at most.
struct Clocks {
  int64_t own, least;
};

class GuideRun {
 public:
  // Gives up where the order's makespan cannot be less than `limit`, or it is beyond `of_order`.
  GuideRun(const Guide& guide, const HeldLimits& limits, const GuidedRule& rule, int64_t limit,
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
    size_t passes = 0;
    for (const PassQueue& queue : guide.queues) passes += queue.places.size();
    inputs_.reset(new Input[passes]);
    for (size_t q = 0, first = 0; q < queues_.size(); ++q) {
      const size_t size = guide.queues[q].places.size();
      queues_[q].inputs = inputs_.get() + first;
      first += size;
      if (q % 2 == 0 && guide.queues[q].stage == 0) {
        std::fill_n(queues_[q].inputs, size, Input{0, {0, 0}});
        queues_[q].arrived = size;
      }
      SetHead(q);
    }
  }

  // The order's makespan; kUnknown where it gave up.
  int64_t Finish(std::vector<std::vector<Action>>* order) {
    while (wake_ups_.any()) {
      const int64_t now = wake_ups_.time();
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
    int64_t arrival;
    Clocks clocks;
  };
  struct Queue {
    // The first that is not done: its place in the guide and when its input arrives, if that is
    // known.
    int32_t head = std::numeric_limits<int32_t>::max();
    int64_t arrival = kUnknown;
    size_t done = 0, arrived = 0;
    Input* inputs = nullptr;  // of all
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
    Clocks end = {0, 0};
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

  // The next arrival of what is first in a queue and is known: later ones arrive later.
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
    wake_ups_.SetEarlier(passes.device, time);
  }

  const Guide& guide_;
  const HeldLimits limits_;
  const GuidedRule rule_;
  const int64_t limit_, too_long_, least_hop_;
  FreeMemory memory_;
  std::vector<Device> devices_;
  std::vector<Queue> queues_;        // as in guide_
  std::unique_ptr<Input[]> inputs_;  // of all queues; set when they are known
  Earliest wake_ups_;
  bool late_ = false;
  Beyond beyond_ = Beyond::kNothing;
  PatienceRange patience_;
};

}  // namespace

GuidedOrder RunGuide(const Guide& guide, const HeldLimits& limits, const GuidedRule& rule,
                     int64_t limit, const OrderLimits& of_order) {
  GuideRun run(guide, limits, rule, limit, of_order);
  GuidedOrder made;
  made.makespan = run.Finish(&made.order);
  made.beyond = run.beyond();
  made.patience = run.patience();
  return made;
}

}  // namespace pipelab
