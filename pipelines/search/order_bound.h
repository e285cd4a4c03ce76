// Lower bounds of a configuration's time and memory, from the order of its schedule: close to what
// the simulator finds, for a fraction of its work.
//
//   StepCache cache(model);
//   OrderBound bound(&cache);
//   PIPELAB_ASSIGN_OR_RETURN(const StepLeast least, bound.Of(config));
//   least.time;  least.memory;       // at most PredictStep's step_time and largest_device
//
// The order is played as sim/order_walk.h says, with the grid's routes of messages. What
// placed_step.h lists is added to a device's actions, and with fully sharded parameters the gather
// of its first stage before its first action. Memory is the walk's activations and the state, with
// the gathered parameters of the stage whose action runs.
#ifndef PIPELAB_PIPELINES_SEARCH_ORDER_BOUND_H_
#define PIPELAB_PIPELINES_SEARCH_ORDER_BOUND_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/search/placed_step.h"
#include "pipelines/search/step_least.h"
#include "pipelines/sim/order_walk.h"
#include "pipelines/step/step_cache.h"
#include "pipelines/step/step_config.h"
#include "tools/base/units.h"

namespace pipelab {

class OrderBound {
 public:
  // The cache must outlive it.
  explicit OrderBound(StepCache* cache) : cache_(*cache), placed_(cache), placement_(cache) {}

  // Errors are those of PredictStep. Of a schedule that is made for its passes' times, no more than
  // that it needs more than `memory`, or takes longer than `time` (0: any), where it does.
  absl::StatusOr<StepLeast> Of(const StepConfig& config, Bytes memory, Nanoseconds time);

 private:
  absl::StatusOr<StepCache::Limits> LimitsOf(StepConfig config, Bytes memory, Nanoseconds time);
  absl::StatusOr<const Schedule*> ScheduleOf(const StepConfig& config, Bytes memory,
                                             Nanoseconds time);
  const std::vector<Bytes>& Peaks();
  const OrderWalk& Walk();
  CostTable CostsOfRuns() const;
  std::vector<Nanoseconds> FirstGathers() const;

  StepCache& cache_;
  PlacedStep placed_;
  PlacedStep placement_;  // without the order
  // By what they depend on of a configuration.
  std::map<std::string, OrderWalk> walks_;
  std::map<std::string, std::vector<Bytes>> peaks_;  // [device]
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_ORDER_BOUND_H_
