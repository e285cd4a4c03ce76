// A configuration's stages, placed by its grid, and what a step does after its actions: shared by
// the bounds of a search.
//
//   PlacedStep placed(&cache);
//   PIPELAB_RETURN_IF_ERROR(placed.Set(config, *schedule));
//   placed.Hop(from, to);                    // the way of a message between two pipeline devices
//   placed.End(copies, walk);                // when a device ends, after its last action
//   placed.State(copies);                    // its weights, gradients and optimizer state
//
// To a device's actions are added
//  * its optimizer steps, after all of them;
//  * where all copies of a stage are one data-parallel group: its reductions, which end before
//    its steps. A stage's last one begins after its last weight gradient, or where communication is
//    not beside compute, after the device's last action; a device has one at a time, so
//    in the order in which they may begin they end soonest;
//  * gathers of new values, one at a time, each after its stage's step.
#ifndef PIPELAB_PIPELINES_SEARCH_PLACED_STEP_H_
#define PIPELAB_PIPELINES_SEARCH_PLACED_STEP_H_

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/sim/order_walk.h"
#include "pipelines/step/step_cache.h"
#include "pipelines/step/step_config.h"
#include "tools/base/units.h"

namespace pipelab {

class PlacedStep {
 public:
  // The cache must outlive it.
  explicit PlacedStep(StepCache* cache) : cache_(*cache) {}

  // `schedule` is of one copy. Configurations that differ in their sharding alone share most of the
  // work where they follow one another. Errors are PredictStep's.
  absl::Status Set(const StepConfig& config, const Schedule& schedule);

  const StepConfig& config() const { return config_; }
  // The key of the configuration, but for how parameters are sharded and summed.
  const std::string& key() const { return key_; }
  // Its schedule and sharding; it is not lowered.
  const Program& order() const { return order_; }
  const CostTable& costs() const { return costs_; }  // without links
  const PathCost& Hop(int from, int to);

  Nanoseconds GatherTime(const StageCopy& copy) const;
  // What follows a device's actions, at least.
  Nanoseconds LeastStepTime() const;
  // The gathers and reductions of a device's runs (ir/sharding.h), one after another; 0 where the
  // configuration has none.
  Nanoseconds CollectivesOfRuns(int device) const;
  // [device] The copies of stages that it has, in the order of stages.
  std::vector<std::vector<StageCopy>> Copies() const;
  // The end of the step on a device that has these; or a bound of it, where `walk` has bounds.
  Nanoseconds End(const std::vector<StageCopy>& copies, const OrderWalk& walk) const;
  // What there is of it at all times, of a device that has these.
  Bytes StateOfDevice(const std::vector<StageCopy>& copies) const;

 private:
  bool one_group() const {
    return config_.copies() > 1 && order_.schedule.placement.num_replicas() == 1;
  }
  // The state of a copy of a stage: of the first on its device, and of one beside another.
  struct State {
    Bytes first, again;
  };
  void SetRings();
  void SetStates();
  Nanoseconds StepTime(const StageCopy& copy) const;
  Nanoseconds ReductionTime(const StageCopy& copy) const;
  // The time of the ring of all copies, and then of the ring of those with the same experts.
  Nanoseconds TimeOfRings(int device, Collective kind, Bytes bytes, Bytes of_experts) const;
  Nanoseconds EndOfReductions(const std::vector<StageCopy>& copies, const OrderWalk& walk) const;

  StepCache& cache_;
  StepConfig config_;
  std::string key_;
  Program order_;
  CostTable costs_;
  absl::optional<RankNetwork> network_;
  std::vector<absl::optional<PathCost>> hops_;  // [from][to]
  std::vector<State> states_;                   // [stage]
  // Steps of the ring of the copies of a pipeline device that share what is sharded, and of those
  // with the same experts. Sums between sets that share are left out: times are bounds.
  struct Rings {
    PathCost all, experts;
  };
  const std::vector<Rings>* rings_ = nullptr;  // [pipeline device]
  // By P, T, C, D, shards, copies with different experts and the order of ranks.
  std::map<std::tuple<int, int, int, int, int, int64_t, RankOrder>, std::vector<Rings>>
      rings_of_grid_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_PLACED_STEP_H_
