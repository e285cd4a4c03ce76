// One heuristic of the automatic zero-bubble scheduler: builds an order while it runs it. Private
// to zero_bubble.
//
//   const Outcome outcome = RunHeuristic(costs, micro_batches, {Heuristic::kInTurn, 2, 0});
//
// Paper: Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, arXiv 2401.10241, section 3.
#ifndef PIPELAB_PIPELINES_SCHEDULES_ZERO_BUBBLE_RUN_H_
#define PIPELAB_PIPELINES_SCHEDULES_ZERO_BUBBLE_RUN_H_

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/zero_bubble.h"

namespace pipelab {

// How a device chooses its next action.
struct Heuristic {
  static constexpr int kNoCap = -1;
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

// What a device holds of a micro-batch at most, from F until W. A forward reserves it, so that an I
// never has to wait for memory.
inline int64_t Reserved(const ZeroBubbleStage& s) {
  return std::max(s.kept.value(), s.kept_for_weight.value());
}

// How many forwards, of m, can come before the first I.
inline int64_t ForwardsBeforeInput(const ZeroBubbleStage& s, int64_t m) {
  return Reserved(s) == 0 ? m : std::min(m, s.memory_limit.value() / Reserved(s));
}
// How many I, of m, can wait for their W beside `forwards` that wait for their I.
inline int64_t WaitingWeights(const ZeroBubbleStage& s, int64_t m, int64_t forwards) {
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

// The order that the heuristic makes of valid costs. O(actions log devices).
Outcome RunHeuristic(const ZeroBubbleCosts& costs, int micro_batches, const Heuristic& heuristic);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_ZERO_BUBBLE_RUN_H_
