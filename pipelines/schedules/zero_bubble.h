// The automatic zero-bubble scheduler (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024,
// arXiv 2401.10241, section 3): the order of F, I and W of a chain with one stage a device, from
// the times of its stages, the time of a hop and what each device may hold.
//
//   ZeroBubbleCosts costs = ZeroBubbleCosts::Unit(/*devices=*/8, /*activations=*/16);
//   costs.stages[0].forward = Nanoseconds(3);
//   costs.stages[0].hop = Nanoseconds(1);
//   PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, MakeZeroBubble(costs, /*micro_batches=*/32));
//
// Any unit of time and memory will do, as long as it is one. Several heuristics are tried and the
// best order is kept: the smallest makespan, then the smallest span of a device (from its first
// action to its last one: what repeats from step to step where devices need not start together).
// A heuristic that reaches a lower bound ends the search. Deterministic; whole numbers throughout;
// O(actions log devices) for each heuristic. Each stage keeps micro-batch order in F, I and W.
#ifndef PIPELAB_PIPELINES_SCHEDULES_ZERO_BUBBLE_H_
#define PIPELAB_PIPELINES_SCHEDULES_ZERO_BUBBLE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/ir/schedule.h"
#include "tools/base/units.h"

namespace pipelab {

struct ZeroBubbleStage {
  Nanoseconds forward, backward_input, backward_weight;
  // From the end of its F to the arrival at the next stage, and from that one's I to its own. What
  // the last stage has does not count.
  Nanoseconds hop;
  Bytes kept;             // by F, until I
  Bytes kept_for_weight;  // by I, until W
  // The limit of all that is kept at a time. A forward takes room for the larger of both at once,
  // so that no I ever waits for memory.
  Bytes memory_limit;
};

struct ZeroBubbleCosts {
  std::vector<ZeroBubbleStage> stages;  // [device]

  // F = I = W = 1, no time between devices; an activation is 1 until its W, and each device may
  // hold `activations`.
  static ZeroBubbleCosts Unit(int devices, int activations);
};

// InvalidArgument naming stage and value when a time or size is negative, when a device may not
// hold one micro-batch, and when there are no stages or micro-batches.
absl::StatusOr<Schedule> MakeZeroBubble(const ZeroBubbleCosts& costs, int micro_batches);

// A makespan that no order can beat: a device waits for its first micro-batch and works through
// all; what its memory did not permit before comes after its first input gradient; no more
// micro-batches than it can hold are on their way together; its last one returns to stage 0.
Nanoseconds ZeroBubbleBound(const ZeroBubbleCosts& costs, int micro_batches);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_ZERO_BUBBLE_H_
