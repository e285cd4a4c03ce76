// Lower bounds of a configuration's time within a given memory, and of its memory, for any order of
// its actions: from the places of its stages, before a schedule is made for their times.
//
//   StepCache cache(model);
//   PlacementBound bound(&cache);
//   PIPELAB_ASSIGN_OR_RETURN(const StepLeast least, bound.Of(config, memory));
//   least.time;     // at most PredictStep's step_time, if that step fits into `memory`
//   least.memory;   // at most PredictStep's largest_device
//
// Time: a device begins after the forwards and messages on the way to its stages, computes, and
// leaves the backwards and messages on the way back to the others; what placed_step.h lists is
// added. Before its first gradient can arrive, a device can do only the forwards that it can hold,
// by its memory and by the scheme. One that holds what k micro-batches keep is no faster than k
// round trips allow: what is kept, times how long it must be kept, is at most the memory beside the
// state, times the step (Little's law). Memory: the state, and what one micro-batch keeps on all
// stages when its loss is computed, or what the activations in flight by the scheme's closed form
// (closed_forms.h) keep at least.
#ifndef PIPELAB_PIPELINES_SEARCH_PLACEMENT_BOUND_H_
#define PIPELAB_PIPELINES_SEARCH_PLACEMENT_BOUND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "pipelines/search/held_activations.h"
#include "pipelines/search/placed_step.h"
#include "pipelines/search/step_least.h"
#include "pipelines/sim/order_walk.h"
#include "pipelines/step/step_cache.h"
#include "pipelines/step/step_config.h"
#include "tools/base/units.h"

namespace pipelab {

class PlacementBound {
 public:
  // The cache must outlive it.
  explicit PlacementBound(StepCache* cache) : cache_(*cache), placed_(cache), activations_(cache) {}

  // Errors are those of PredictStep.
  absl::StatusOr<StepLeast> Of(const StepConfig& config, Bytes memory);
  // The same of all shardings, of which the configuration has the one with the least state: without
  // what comes after the actions.
  absl::StatusOr<StepLeast> OfAnySharding(const StepConfig& config, Bytes memory);
  // For a scheme that chooses its order by the passes' times: what an order needs that takes no
  // longer than the scheme's for equal times, if `memory` has none. Else 0. Slower than Of: it
  // makes the schedule for equal times.
  absl::StatusOr<Bytes> MemoryOfOrder(const StepConfig& config, Bytes memory);

 private:
  // The ways of a micro-batch to and from a stage, in nanoseconds.
  struct Ways {
    double before = 0;  // until its forward can begin
    double beyond = 0;  // from the end of its forward until its gradient is there
    double after = 0;   // from the end of its backward until the first stage's is over
  };
  // False of schedules that WalkOrder does not take.
  absl::StatusOr<bool> Place(const StepConfig& config);
  void SetWays();
  void SetHeld();
  double HopTime(int edge, int from, int to);
  double Backward(int stage) const;  // what a stage's gradient takes
  double PassTime(int stage) const;
  // What OfAnySharding's memory depends on; empty where that is not known beforehand.
  absl::StatusOr<std::string> MemoryKey(StepConfig config);
  StepLeast OfDevice(int device, Bytes memory, OrderWalk* walk) const;
  StepLeast OfDevices(Bytes memory, OrderWalk* walk) const;
  Bytes MemoryFor(Nanoseconds order, Bytes least, Bytes most) const;

  StepCache& cache_;
  PlacedStep placed_;
  std::string ways_of_;                         // of the configuration before
  std::vector<std::vector<Ways>> ways_;         // [replica][stage]
  std::vector<std::vector<StageCopy>> copies_;  // [device]
  std::vector<Bytes> states_;                   // [device]
  double micro_batches_ = 0;                    // of a replica, at least
  std::vector<double> kept_;                    // [stage] bytes of a micro-batch
  std::vector<Bytes> peaks_;                    // [stage] the most of one micro-batch, at least
  std::vector<bool> recomputed_;                // [stage]
  bool splits_ = false;                         // backwards have parts
  double most_held_ = 0;                        // stage activations of a device, by the scheme
  std::vector<double> held_;                    // [device] bytes that it holds at some time
  HeldActivations activations_;
  absl::flat_hash_map<std::string, Bytes> memory_;  // OfAnySharding's, by MemoryKey
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_PLACEMENT_BOUND_H_
