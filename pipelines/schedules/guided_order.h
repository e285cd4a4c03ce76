// Orders of F, I and W that are made by running them. A guide, an order of F and I that is known to
// fit the memory, says what comes first; a device that would wait takes something later that can
// start, as long as all that the guide has before it still fits; and W fill what is left.
//
//   Schedule schedule = ZigZagPipeline(params);   // ... and schedule.order: F and I
//   FillGapsWithWeights(&schedule, 2 * params.devices);
//
//   // The best of complete orders and of what guides become:
//   return BestOrder(PassLengths::Of(params), 2 * params.devices, {published}, {guide});
//
// Chains of stages, one device a stage and replica; all that a stage runs is in micro-batch order.
// A run is O(actions log devices) where the guide's next action can mostly start.
#ifndef PIPELAB_PIPELINES_SCHEDULES_GUIDED_ORDER_H_
#define PIPELAB_PIPELINES_SCHEDULES_GUIDED_ORDER_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/catalog.h"

namespace pipelab {

// In any unit of time.
struct PassLengths {
  std::vector<int64_t> forward, recompute, backward_input, backward_weight;  // [stage]
  // [stage] From it to the next one, and back, where they are on two devices.
  std::vector<int64_t> hop;

  static PassLengths Unit(int stages);  // 1, and hops of 0
  bool AreEqual() const;                // all alike, and hops of 0
  // Makes them from params.times, which are not empty; with recompute where params asks for it.
  static PassLengths Of(const SchemeParams& params);
};

struct GuidedRule {
  bool ahead = false;          // take something later where the guide's next action cannot start
  bool weights_first = false;  // ... but only where there is no W to do
  // A W may put off an F or I that is to arrive before its end by this many quarters of itself.
  int patience_quarters = 4;
};

// What a device may hold at a time.
struct HeldLimits {
  int activations = 0;                            // from F to W
  int waiting = std::numeric_limits<int>::max();  // from I to W: what recompute leaves, at least 1
};

// The time until a complete order (F, I, W) is over. A recompute comes right before its I, and does
// not wait for the gradient.
int64_t Makespan(const Schedule& schedule, const PassLengths& lengths);

// Runs the guide (schedule->order: F and I) by a rule and makes it the order that this was,
// complete with W: of each stage in the order of its I, the oldest of a device first. No device
// holds more than the limits at a time.
//
// An F of the guide must be able to run once all W before it have run, as it is when
// `limits.activations` is not below what the guide itself holds from F to I
// (HeldFromForwardToInput).
void RunGuided(const PassLengths& lengths, const HeldLimits& limits, const GuidedRule& rule,
               Schedule* schedule);

// RunGuided with F = I = W = 1 and no communication: keeps the order of F and I, and runs a W
// whenever the next one cannot run.
void FillGapsWithWeights(Schedule* schedule, int max_activations);

// The guide that a complete order is.
Schedule WithoutWeights(Schedule schedule);

// The most that a device holds if every W follows its I.
int HeldFromForwardToInput(const Schedule& guide);
// The most W that wait on a device.
int HeldFromInputToWeight(const Schedule& complete);

// The shortest, for `lengths`, of complete orders and of what all rules make of those guides that
// fit into `max_activations`, of all of which there is one at least; the first of equals. With
// recompute no more W wait than in the first complete order. ResourceExhausted or OutOfRange where
// it is beyond `limits`.
absl::StatusOr<Schedule> BestOrder(const PassLengths& lengths, int max_activations,
                                   const std::vector<Schedule>& complete,
                                   const std::vector<Schedule>& guides,
                                   const OrderLimits& limits = {});

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_GUIDED_ORDER_H_
