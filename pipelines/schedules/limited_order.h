// Whether an order that is made action by action stays within OrderLimits (catalog.h). Private to
// guided_order.
//
//   LimitedOrder order(params.limits, guide, lengths);
//   if (order.Add(device, action, end, left) != Beyond::kNothing) return;   // give up
#ifndef PIPELAB_PIPELINES_SCHEDULES_LIMITED_ORDER_H_
#define PIPELAB_PIPELINES_SCHEDULES_LIMITED_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/schedules/guided_run.h"

namespace pipelab {

enum class Beyond : uint8_t { kNothing, kTime, kMemory };

// When an order's actions are over if they wait for nothing but their input.
class Played {
 public:
  // Keeps references to both.
  Played(const Schedule& schedule, const PassLengths& lengths)
      : lengths_(lengths), arrivals_(schedule, lengths), ends_(schedule.num_devices()) {}

  // Of the device's next action.
  int64_t Add(int device, const Action& a) {
    int64_t& end = ends_[device];
    if (a.kind != ActionKind::kBackwardWeight) {
      const bool input = a.kind == ActionKind::kBackwardInput;
      end = std::max(end, arrivals_.At(a) - (input ? lengths_.recompute[a.stage] : 0));
    }
    end += arrivals_.Length(a);
    arrivals_.End(a, end);
    return end;
  }

 private:
  const PassLengths& lengths_;
  Arrivals arrivals_;
  std::vector<int64_t> ends_;  // [device]
};

class LimitedOrder {
 public:
  // Keeps references to all.
  LimitedOrder(const OrderLimits& limits, const Schedule& schedule, const PassLengths& lengths)
      : limits_(limits), bytes_(schedule.num_devices()) {
    if (limits.too_long == Nanoseconds(0)) return;
    least_ = lengths;
    for (int64_t& hop : least_.hop) hop = std::min(hop, limits.hop.value());
    if (least_.hop != lengths.hop) played_.emplace(schedule, least_);
  }
  LimitedOrder(const LimitedOrder&) = delete;
  LimitedOrder& operator=(const LimitedOrder&) = delete;

  // The device's next action, which is over at `end`; then it has `left` to do.
  Beyond Add(int device, const Action& a, int64_t end, int64_t left) {
    if (!limits_.free.empty() && !Fits(device, a)) return Beyond::kMemory;
    if (limits_.too_long == Nanoseconds(0)) return Beyond::kNothing;
    if (played_.has_value()) end = played_->Add(device, a);
    return end + left >= limits_.too_long.value() ? Beyond::kTime : Beyond::kNothing;
  }
  // Of a whole one.
  static Beyond Of(const OrderLimits& limits, const Schedule& complete, PassLengths lengths) {
    LimitedOrder order(limits, complete, lengths);
    for (int d = 0; d < complete.num_devices() && !limits.free.empty(); ++d) {
      for (const Action& a : complete.order[d]) {
        if (!order.Fits(d, a)) return Beyond::kMemory;
      }
    }
    if (limits.too_long == Nanoseconds(0)) return Beyond::kNothing;
    const int64_t least = Makespan(complete, order.least_);
    return least >= limits.too_long.value() ? Beyond::kTime : Beyond::kNothing;
  }

 private:
  // Beside what the device has, to which what is left of the action comes.
  bool Fits(int device, const Action& a) {
    const OrderLimits::Use& use =
        (a.kind == ActionKind::kForward         ? limits_.forward
         : a.kind == ActionKind::kBackwardInput ? limits_.backward_input
                                                : limits_.backward_weight)[a.stage];
    Bytes& bytes = bytes_[device];
    const Bytes most = bytes + std::max(use.peak, use.change);
    bytes += use.change;
    return most <= limits_.free[device];
  }

  const OrderLimits& limits_;
  std::vector<Bytes> bytes_;       // [device]
  PassLengths least_;              // with limits_.hop
  absl::optional<Played> played_;  // where that makes a difference
};

// RunGuided. The order and its makespan; kUnknown where it gave up since that cannot be less than
// `limit`, or the order is beyond `of_order`.
struct GuidedOrder {
  std::vector<std::vector<Action>> order;
  int64_t makespan = kUnknown;
  Beyond beyond = Beyond::kNothing;
};
GuidedOrder RunGuide(const PassLengths& lengths, const HeldLimits& limits, const GuidedRule& rule,
                     const Schedule& guide, int64_t limit, const OrderLimits& of_order = {});

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_LIMITED_ORDER_H_
