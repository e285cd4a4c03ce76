#include "pipelines/schedules/zero_bubble_run.h"

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

// Builds an order while it runs it, in the order of time.
class HeuristicRun {
 public:
  HeuristicRun(const ZeroBubbleCosts& costs, int micro_batches, const Heuristic& heuristic)
      : costs_(costs), m_(micro_batches), heuristic_(heuristic), devices_(costs.stages.size()) {
    int64_t round_trip = 0;  // from the end of a forward to the arrival of its gradient
    for (const ZeroBubbleStage& s : costs.stages) {
      round_trip += s.forward.value() + s.backward_input.value() + 2 * s.hop.value();
    }
    round_trip -= 2 * costs.stages.back().hop.value();
    for (size_t d = 0; d < devices_.size(); ++d) {
      const ZeroBubbleStage& s = costs.stages[d];
      round_trip -= s.forward.value() + s.backward_input.value();
      Device& device = devices_[d];
      if (heuristic.warm_up_quarters != Heuristic::kNoCap) {
        device.warm_up =
            round_trip * heuristic.warm_up_quarters / std::max<int64_t>(1, 4 * s.forward.value());
      }
      round_trip -= 2 * s.hop.value();
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
        Arrive(d + 1, device.free + s.hop.value(), &devices_[d + 1].forward_arrival[m]);
      } else {
        device.input_arrival[m] = device.free;
      }
    } else if (kind == ActionKind::kBackwardInput) {
      const int m = device.inputs++;
      outcome_.order[d].push_back(BackwardInput(d, m));
      device.held += s.kept_for_weight.value() - Reserved(s);
      device.free = now + s.backward_input.value();
      if (d > 0) {
        const int64_t hop = costs_.stages[d - 1].hop.value();
        Arrive(d - 1, device.free + hop, &devices_[d - 1].input_arrival[m]);
      }
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

}  // namespace

Outcome RunHeuristic(const ZeroBubbleCosts& costs, int micro_batches, const Heuristic& heuristic) {
  return HeuristicRun(costs, micro_batches, heuristic).Finish();
}

}  // namespace pipelab
