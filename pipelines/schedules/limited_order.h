// Whether an order stays within OrderLimits (catalog.h). Private to guided_order.
//
//   FreeMemory memory(params.limits, guide.num_devices());
//   if (!memory.Fits(device, action)) return Beyond::kMemory;   // give up
#ifndef PIPELAB_PIPELINES_SCHEDULES_LIMITED_ORDER_H_
#define PIPELAB_PIPELINES_SCHEDULES_LIMITED_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/guided_order.h"

namespace pipelab {

enum class Beyond : uint8_t { kNothing, kTime, kMemory };

class FreeMemory {
 public:
  // Keeps a reference.
  FreeMemory(const OrderLimits& limits, int devices) : limits_(limits), bytes_(devices) {}

  // Beside what the device has, to which what is left of its next action comes.
  bool Fits(int device, const Action& a) {
    if (limits_.free.empty()) return true;
    const OrderLimits::Use& use =
        (a.kind == ActionKind::kForward         ? limits_.forward
         : a.kind == ActionKind::kBackwardInput ? limits_.backward_input
                                                : limits_.backward_weight)[a.stage];
    Bytes& bytes = bytes_[device];
    const Bytes most = bytes + std::max(use.peak, use.change);
    bytes += use.change;
    return most <= limits_.free[device];
  }

 private:
  const OrderLimits& limits_;
  std::vector<Bytes> bytes_;  // [device]
};

// Which limits a whole order exceeds.
Beyond BeyondLimits(const OrderLimits& limits, const Schedule& complete,
                    const PassLengths& lengths);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_LIMITED_ORDER_H_
