// One run of a guide (guided_order.h). Private to guided_order.
//
//   const Guide guide(schedule, lengths);
//   GuidedOrder made = RunGuide(guide, limits, rule, /*limit=*/kUnknown);
#ifndef PIPELAB_PIPELINES_SCHEDULES_GUIDED_RUN_H_
#define PIPELAB_PIPELINES_SCHEDULES_GUIDED_RUN_H_

#include <cstdint>
#include <vector>

#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/earliest.h"
#include "pipelines/schedules/guide.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/schedules/limited_order.h"

namespace pipelab {

// In quarters, as GuidedRule has it: from `least` on and below `below`.
struct PatienceRange {
  int64_t least = 0, below = kUnknown;

  bool Has(int quarters) const { return least <= quarters && quarters < below; }
};

// RunGuided. The order and its makespan; kUnknown where it gave up since that cannot be less than
// `limit`, or the order is beyond `of_order`.
struct GuidedOrder {
  std::vector<std::vector<Action>> order;
  int64_t makespan = kUnknown;
  Beyond beyond = Beyond::kNothing;
  PatienceRange patience;  // all that make the same of it, or give up as it did
};
// The guide IsCountable.
GuidedOrder RunGuide(const Guide& guide, const HeldLimits& limits, const GuidedRule& rule,
                     int64_t limit, const OrderLimits& of_order = {});

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_GUIDED_RUN_H_
