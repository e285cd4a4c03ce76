// What runs of guides (guided_order.h) look things up in. Private to guided_order.
#ifndef PIPELAB_PIPELINES_SCHEDULES_GUIDED_RUN_H_
#define PIPELAB_PIPELINES_SCHEDULES_GUIDED_RUN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/guided_order.h"

namespace pipelab {

inline constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

// The passes of one kind, F or I, of a stage's replica: on one device, in the order of its guide,
// which is that of micro-batches and so the order in which their inputs arrive.
struct PassQueue {
  int device = -1, stage = 0;
  std::vector<int32_t> places;  // in the device's guide
};

// A guide, as all runs of it need it.
//
//   const Guide guide(schedule, lengths);
//   guide.QueueOf(action);           // in guide.queues
//   guide.NextOf(action);            // the queue whose next input is what the action makes; or -1
struct Guide {
  // Keeps references to both.
  Guide(const Schedule& schedule, const PassLengths& lengths);

  int QueueOf(const Action& a) const {
    const int replica = schedule.placement.replica_of_micro_batch[a.micro_batch];
    return 2 * (replica * schedule.num_stages() + a.stage) +
           (a.kind == ActionKind::kForward ? 0 : 1);
  }
  int NextOf(const Action& a) const {
    if (a.kind == ActionKind::kBackwardWeight) return -1;
    const int own = QueueOf(a);
    if (a.kind == ActionKind::kForward) {
      return a.stage + 1 == schedule.num_stages() ? own + 1 : own + 2;
    }
    return a.stage == 0 ? -1 : own - 2;
  }

  const Schedule& schedule;
  const PassLengths& lengths;
  std::vector<PassQueue> queues;               // [replica][stage][F or I]
  std::vector<std::vector<int>> queues_of[2];  // [F or I][device]
  std::vector<std::vector<int8_t>> held_by;    // [device][place] 1 for F, -1 for I
  std::vector<int64_t> work;                   // [device] of all its passes
};

// The earliest of times, one for each device; of equal ones that of the first device.
class Earliest {
 public:
  Earliest(size_t devices, int64_t time) {
    while (leaves_ < devices) leaves_ *= 2;
    times_.assign(2 * leaves_, kUnknown);
    std::fill_n(times_.begin() + leaves_, devices, time);
    for (size_t n = leaves_; n-- > 1;) times_[n] = std::min(times_[2 * n], times_[2 * n + 1]);
  }

  int64_t time() const { return times_[1]; }
  size_t device() const {
    size_t n = 1;
    while (n < leaves_) n = 2 * n + (times_[2 * n] == times_[1] ? 0 : 1);
    return n - leaves_;
  }
  int64_t Of(size_t device) const { return times_[leaves_ + device]; }
  void Set(size_t device, int64_t time) {
    size_t n = leaves_ + device;
    times_[n] = time;
    for (; n > 1; n /= 2) {
      const int64_t least = std::min(times_[n], times_[n ^ 1]);
      if (times_[n / 2] == least) return;
      times_[n / 2] = least;
    }
  }

 private:
  size_t leaves_ = 1;
  std::vector<int64_t> times_;  // a binary tree of the least
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_GUIDED_RUN_H_
