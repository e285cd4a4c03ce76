// A guide (guided_order.h) as all runs of it need it. Private to guided_order.
//
//   const Guide guide(schedule, lengths);
//   guide.queues[guide.NextOf(action)];    // whose next input the action makes
#ifndef PIPELAB_PIPELINES_SCHEDULES_GUIDE_H_
#define PIPELAB_PIPELINES_SCHEDULES_GUIDE_H_

#include <cstdint>
#include <vector>

#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/guided_order.h"

namespace pipelab {

inline int64_t PassLength(const PassLengths& lengths, const Action& a) {
  if (a.kind == ActionKind::kForward) return lengths.forward[a.stage];
  return a.kind == ActionKind::kBackwardInput
             ? lengths.recompute[a.stage] + lengths.backward_input[a.stage]
             : lengths.backward_weight[a.stage];
}

// The passes of one kind, F or I, of a stage's replica: on one device, in the order of its guide,
// which is that of micro-batches and so the order in which their inputs arrive.
struct PassQueue {
  int device = -1, stage = 0;
  std::vector<int32_t> places;  // in the device's guide
};

struct Guide {
  // Keeps references to both.
  Guide(const Schedule& schedule, const PassLengths& lengths);

  // In `queues`.
  int QueueOf(const Action& a) const {
    const int replica = schedule.placement.replica_of_micro_batch[a.micro_batch];
    return 2 * (replica * schedule.num_stages() + a.stage) +
           (a.kind == ActionKind::kForward ? 0 : 1);
  }
  // The queue whose next input is what the action makes; -1 where there is none.
  int NextOf(const Action& a) const {
    if (a.kind == ActionKind::kBackwardWeight) return -1;
    const int own = QueueOf(a);
    if (a.kind == ActionKind::kForward) {
      return a.stage + 1 == schedule.num_stages() ? own + 1 : own + 2;
    }
    return a.stage == 0 ? -1 : own - 2;
  }

  // Whether no order of it takes longer than a run can count.
  bool IsCountable() const;

  const Schedule& schedule;
  const PassLengths& lengths;
  std::vector<PassQueue> queues;               // [replica][stage][F or I]
  std::vector<std::vector<int>> queues_of[2];  // [F or I][device]
  std::vector<std::vector<int8_t>> held_by;    // [device][place] 1 for F, -1 for I
  std::vector<int64_t> work;                   // [device] of all its passes
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_GUIDE_H_
