#include "pipelines/schedules/zero_bubble.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "pipelines/schedules/schemes.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

constexpr int kNoCap = -1;

// How a device chooses its next action.
struct Heuristic {
  // kInTurn: F and I strictly in turn after a warm-up, each W as late as memory permits (ZB-H1 and
  // ZB-H2 are so). Else whatever can start, the named one first, and W when neither can or memory
  // is full.
  enum Rule { kInTurn, kForwardFirst, kInputFirst } rule;
  // F may be ahead of I by one more than this many quarters of the forwards that fit into the round
  // trip to the last device: 2 makes ZB-H1's warm-up, 4 ZB-H2's. kNoCap: as many as memory holds.
  int warm_up_quarters;
  // A W may put off an F or I that is to arrive before its end by this many quarters of itself.
  int patience_quarters;
};

// The first one is optimal for equal times at one and at two times 1F1B's memory; the others are
// the ones that were best somewhere over a grid of uneven times, hops and limits.
constexpr Heuristic kHeuristics[] = {
    {Heuristic::kForwardFirst, 4, 0},    {Heuristic::kInTurn, 2, 0},
    {Heuristic::kInTurn, 4, 0},          {Heuristic::kForwardFirst, 2, 0},
    {Heuristic::kForwardFirst, 2, 4},    {Heuristic::kForwardFirst, 3, 2},
    {Heuristic::kForwardFirst, 3, 4},    {Heuristic::kForwardFirst, 4, 2},
    {Heuristic::kForwardFirst, 4, 4},    {Heuristic::kInputFirst, kNoCap, 0},
    {Heuristic::kInputFirst, kNoCap, 2}, {Heuristic::kInputFirst, kNoCap, 4},
};

// What a device holds of a micro-batch at most, from F until W. A forward reserves it, so that an I
// never has to wait for memory.
int64_t Reserved(const ZeroBubbleStage& s) {
  return std::max(s.kept.value(), s.kept_for_weight.value());
}

// How many forwards, of m, can come before the first I.
int64_t ForwardsBeforeInput(const ZeroBubbleStage& s, int64_t m) {
  return Reserved(s) == 0 ? m : std::min(m, s.memory_limit.value() / Reserved(s));
}
// How many I, of m, can wait for their W beside `forwards` that wait for their I.
int64_t WaitingWeights(const ZeroBubbleStage& s, int64_t m, int64_t forwards) {
  if (s.kept_for_weight.value() == 0) return m;
  return std::min(m, (s.memory_limit.value() - forwards * Reserved(s)) / s.kept_for_weight.value());
}

struct Outcome {
  int64_t makespan = 0, longest_span = 0;
  std::vector<std::vector<Action>> order;

  bool operator<(const Outcome& o) const {
    return std::tie(makespan, longest_span) < std::tie(o.makespan, o.longest_span);
  }
};

// Builds an order while it runs it, in the order of time.
class Run {
 public:
  Run(const ZeroBubbleCosts& costs, int micro_batches, const Heuristic& heuristic)
      : costs_(costs), m_(micro_batches), heuristic_(heuristic), devices_(costs.stages.size()) {
    int64_t round_trip = 0;  // from the end of a forward to the arrival of its gradient
    for (const ZeroBubbleStage& s : costs.stages) {
      round_trip += s.forward.value() + s.backward_input.value() + 2 * costs.hop.value();
    }
    for (size_t d = 0; d < devices_.size(); ++d) {
      const ZeroBubbleStage& s = costs.stages[d];
      round_trip -= s.forward.value() + s.backward_input.value() + 2 * costs.hop.value();
      Device& device = devices_[d];
      if (heuristic.warm_up_quarters != kNoCap) {
        device.warm_up =
            round_trip * heuristic.warm_up_quarters / std::max<int64_t>(1, 4 * s.forward.value());
      }
      if (heuristic.rule == Heuristic::kInTurn) {
        // By counting stages, so that the steps from device to device are equal. More forwards
        // ahead than the device before could send would be waited for forever.
        device.warm_up =
            std::min<int64_t>((devices_.size() - 1 - d) * heuristic.warm_up_quarters / 2,
                              ForwardsBeforeInput(s, m_) - 1);
        if (d > 0) device.warm_up = std::min(device.warm_up, devices_[d - 1].warm_up);
        device.lag = WaitingWeights(s, m_, device.warm_up + 1);
      }
      device.forward_arrival.assign(m_, d == 0 ? 0 : kUnknown);
      device.input_arrival.assign(m_, kUnknown);
      outcome_.order.emplace_back().reserve(size_t{3} * m_);
      wake_ups_.emplace(0, d);
    }
  }

  Outcome Finish() && {
    while (!wake_ups_.empty()) {
      const auto [now, d] = wake_ups_.top();
      wake_ups_.pop();
      if (now < devices_[d].free) continue;  // it comes back at its action's end
      if (const Choice choice = Choose(d, now); choice.start) Start(d, choice.kind, now);
    }
    for (const Device& device : devices_) {
      CHECK_EQ(device.weights, m_) << "a device is stuck";
      outcome_.makespan = std::max(outcome_.makespan, device.free);
      outcome_.longest_span = std::max(outcome_.longest_span, device.free - device.begin);
    }
    return std::move(outcome_);
  }

 private:
  struct Device {
    int forwards = 0, inputs = 0, weights = 0;  // started
    int64_t warm_up = kUnknown;                 // how far F may be ahead of I before one more F
    int64_t lag = 0;                            // in turn: W that wait
    int64_t begin = 0, free = 0, held = 0;
    std::vector<int64_t> forward_arrival, input_arrival;  // [micro-batch]
  };
  struct Choice {
    bool start = false;  // else wait for an arrival
    ActionKind kind = ActionKind::kForward;
  };

  Choice Choose(int d, int64_t now) const {
    const Device& device = devices_[d];
    return heuristic_.rule == Heuristic::kInTurn ? ChooseInTurn(device, now)
                                                 : ChooseReady(device, costs_.stages[d], now);
  }

  Choice ChooseInTurn(const Device& device, int64_t now) const {
    const int waiting = device.inputs - device.weights;
    if (waiting > device.lag || (waiting > 0 && device.inputs == m_)) {
      return {true, ActionKind::kBackwardWeight};
    }
    if (device.forwards < m_ && device.forwards - device.inputs <= device.warm_up) {
      return {device.forward_arrival[device.forwards] <= now, ActionKind::kForward};
    }
    if (device.inputs == m_) return {};
    return {device.input_arrival[device.inputs] <= now, ActionKind::kBackwardInput};
  }

  Choice ChooseReady(const Device& device, const ZeroBubbleStage& s, int64_t now) const {
    const bool forward_allowed = device.forwards < m_ &&
                                 device.forwards - device.inputs <= device.warm_up &&
                                 device.held + Reserved(s) <= s.memory_limit.value();
    const int64_t forward = forward_allowed ? device.forward_arrival[device.forwards] : kUnknown;
    const int64_t input = device.inputs < m_ ? device.input_arrival[device.inputs] : kUnknown;
    const bool forward_first = heuristic_.rule == Heuristic::kForwardFirst || input > now;
    if (forward <= now && forward_first) return {true, ActionKind::kForward};
    if (input <= now) return {true, ActionKind::kBackwardInput};
    if (device.weights == device.inputs) return {};
    const int64_t next = std::min(forward, input);
    const int64_t time = s.backward_weight.value();
    const bool in_time =
        next == kUnknown || 4 * (now + time - next) <= heuristic_.patience_quarters * time;
    return {in_time, ActionKind::kBackwardWeight};
  }

  void Start(int d, ActionKind kind, int64_t now) {
    const ZeroBubbleStage& s = costs_.stages[d];
    Device& device = devices_[d];
    if (outcome_.order[d].empty()) device.begin = now;
    if (kind == ActionKind::kForward) {
      const int m = device.forwards++;
      outcome_.order[d].push_back(Forward(d, m));
      device.held += Reserved(s);
      device.free = now + s.forward.value();
      if (d + 1 < static_cast<int>(devices_.size())) {
        Arrive(d + 1, device.free + costs_.hop.value(), &devices_[d + 1].forward_arrival[m]);
      } else {
        device.input_arrival[m] = device.free;
      }
    } else if (kind == ActionKind::kBackwardInput) {
      const int m = device.inputs++;
      outcome_.order[d].push_back(BackwardInput(d, m));
      device.held += s.kept_for_weight.value() - Reserved(s);
      device.free = now + s.backward_input.value();
      if (d > 0) Arrive(d - 1, device.free + costs_.hop.value(), &devices_[d - 1].input_arrival[m]);
    } else {
      outcome_.order[d].push_back(BackwardWeight(d, device.weights++));
      device.held -= s.kept_for_weight.value();
      device.free = now + s.backward_weight.value();
    }
    wake_ups_.emplace(device.free, d);
  }

  void Arrive(int d, int64_t time, int64_t* arrival) {
    *arrival = time;
    wake_ups_.emplace(time, d);
  }

  const ZeroBubbleCosts& costs_;
  const int m_;
  const Heuristic heuristic_;
  std::vector<Device> devices_;
  using WakeUp = std::pair<int64_t, int>;  // time, device
  std::priority_queue<WakeUp, std::vector<WakeUp>, std::greater<>> wake_ups_;
  Outcome outcome_;
};

// What no order can do better.
struct Bounds {
  Bounds(const ZeroBubbleCosts& costs, int64_t m) {
    const int64_t hop = costs.hop.value();
    int64_t down = 0;        // until the first micro-batch reaches the stage
    int64_t up = 0;          // from the end of its I to the end of stage 0's
    int64_t round_trip = 0;  // from the begin of its first F to the begin of its first I
    for (const ZeroBubbleStage& s : costs.stages) {
      round_trip += s.forward.value() + s.backward_input.value() + 2 * hop;
    }
    round_trip -= 2 * hop;
    for (const ZeroBubbleStage& s : costs.stages) {
      const int64_t f = s.forward.value(), i = s.backward_input.value(),
                    w = s.backward_weight.value();
      round_trip -= i;
      // It does all its work; and after its first I all the work that could not come before; and as
      // many micro-batches as it can hold go round together.
      const int64_t held = std::min(m, 1 + WaitingWeights(s, m, 1));
      const int64_t rounds = (m - 1) / held;  // before the last one
      const int64_t span_here =
          std::max({m * (f + i + w), round_trip + m * (i + w) + (m - ForwardsBeforeInput(s, m)) * f,
                    rounds * (round_trip + i + w) + round_trip + (m - rounds * held) * (i + w)});
      // Its last I follows the W that make room for its last F, and goes back to stage 0, which
      // then has a W to do.
      const int64_t last_back =
          m * (f + i) + (m - held) * w + up + costs.stages[0].backward_weight.value();
      span = std::max(span, span_here);
      makespan = std::max(makespan, down + std::max(span_here, last_back));
      down += f + hop;
      up += i + hop;
      round_trip -= f + 2 * hop;
    }
  }
  int64_t makespan = 0, span = 0;
};

absl::Status CheckCosts(const ZeroBubbleCosts& costs, int micro_batches) {
  constexpr size_t kMaxStages = std::numeric_limits<int16_t>::max();
  if (costs.stages.empty() || costs.stages.size() > kMaxStages) {
    return absl::InvalidArgumentError(
        absl::StrCat(costs.stages.size(), " stages: 1 to ", kMaxStages, " are possible"));
  }
  if (micro_batches < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro_batches=", micro_batches, ": a step needs at least 1 micro-batch"));
  }
  for (size_t d = 0; d < costs.stages.size(); ++d) {
    const ZeroBubbleStage& s = costs.stages[d];
    for (int64_t value : {s.forward.value(), s.backward_input.value(), s.backward_weight.value(),
                          s.kept.value(), s.kept_for_weight.value(), costs.hop.value()}) {
      if (value < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("stage ", d, ": a time or size is negative (", value, ")"));
      }
    }
    if (s.memory_limit.value() < Reserved(s)) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", d, ": a memory limit of ",
                                                     s.memory_limit.value(), " is less than the ",
                                                     Reserved(s), " that one micro-batch takes"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Schedule> MakeUnit(const SchemeParams& params, int activations) {
  PIPELAB_RETURN_IF_ERROR(CheckOneChunk(params));
  return MakeZeroBubble(ZeroBubbleCosts::Unit(params.devices, activations), params.micro_batches);
}

}  // namespace

ZeroBubbleCosts ZeroBubbleCosts::Unit(int devices, int activations) {
  ZeroBubbleStage stage;
  stage.forward = stage.backward_input = stage.backward_weight = Nanoseconds(1);
  stage.kept = stage.kept_for_weight = Bytes(1);
  stage.memory_limit = Bytes(activations);
  ZeroBubbleCosts costs;
  costs.stages.assign(devices, stage);
  return costs;
}

Nanoseconds ZeroBubbleBound(const ZeroBubbleCosts& costs, int micro_batches) {
  return Nanoseconds(Bounds(costs, micro_batches).makespan);
}

absl::StatusOr<Schedule> MakeZeroBubble(const ZeroBubbleCosts& costs, int micro_batches) {
  PIPELAB_RETURN_IF_ERROR(CheckCosts(costs, micro_batches));
  SchemeParams params;
  params.devices = static_cast<int>(costs.stages.size());
  params.micro_batches = micro_batches;
  params.chunks = 1;
  Schedule schedule = LoopedPipeline(params);
  const Bounds bounds(costs, micro_batches);
  Outcome best;
  for (const Heuristic& heuristic : kHeuristics) {
    Outcome outcome = Run(costs, micro_batches, heuristic).Finish();
    if (best.order.empty() || outcome < best) best = std::move(outcome);
    if (best.makespan <= bounds.makespan && best.longest_span <= bounds.span) break;
  }
  schedule.order = std::move(best.order);
  schedule.name = "zero_bubble";
  return schedule;
}

absl::StatusOr<Schedule> MakeZb1p(const SchemeParams& params) {
  return MakeUnit(params, params.devices);
}

absl::StatusOr<Schedule> MakeZb2p(const SchemeParams& params) {
  return MakeUnit(params, 2 * params.devices);
}

}  // namespace pipelab
