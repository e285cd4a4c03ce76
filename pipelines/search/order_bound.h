// What no program of a configuration is faster than, or needs less than, from the order of its
// schedule: close to what the simulator finds, for a fraction of its work.
//
//   StepCache cache(model);
//   OrderBound bound(&cache);
//   PIPELAB_ASSIGN_OR_RETURN(const OrderLeast least, bound.Of(config));
//   least.time;  least.memory;       // at most PredictStep's step_time and largest_device
//
// The order is played as sim/order_walk.h says, with the ways of messages that the grid has, and
// these come on top of a device's actions:
//  * its optimizer steps, which come after all of them;
//  * where all copies of a stage are one data-parallel group: its reductions, which are over before
//    its steps. A stage's last one begins after its last weight gradient, or where communication is
//    not beside compute, after the device's last action; a device has one at a time, so
//    in the order in which they may begin they end soonest;
//  * gathers of new values, one at a time, each after its stage's step;
//  * fully sharded: the gather of its first stage, before its first action.
// Memory is the walk's activations and the state; of what is put together of sharded parameters,
// that of the stage whose action runs.
#ifndef PIPELAB_PIPELINES_SEARCH_ORDER_BOUND_H_
#define PIPELAB_PIPELINES_SEARCH_ORDER_BOUND_H_

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/sim/order_walk.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "pipelines/step/step_config.h"
#include "tools/base/units.h"

namespace pipelab {

struct OrderLeast {
  Nanoseconds time;
  Bytes memory;  // of the largest device
};

class OrderBound {
 public:
  // The cache must outlive it.
  explicit OrderBound(StepCache* cache) : cache_(*cache) {}

  // Errors are those of PredictStep. Configurations that differ in their sharding alone share most
  // of the work where they follow one another.
  absl::StatusOr<OrderLeast> Of(const StepConfig& config);

 private:
  absl::Status SetOrder(const StepConfig& config);
  void SetRings(const StepConfig& config);
  void SetWalk(const StepConfig& config);
  CostTable CostsOfRuns() const;
  std::vector<Nanoseconds> FirstGathers(const StepConfig& config) const;

  StepCache& cache_;
  // Of the configuration before.
  std::string order_of_, walk_of_;
  Program order_;
  CostTable costs_;
  OrderWalk walk_;
  absl::optional<RankNetwork> network_;
  const std::vector<PathCost>* rings_ = nullptr;                              // [pipeline device]
  std::map<std::tuple<int, int, int>, std::vector<PathCost>> rings_of_grid_;  // by P, T, D
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_ORDER_BOUND_H_
