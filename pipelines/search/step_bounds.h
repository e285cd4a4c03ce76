// Lower bounds of a configuration's time and memory for any order of its actions: how a search
// knows which configurations it need not simulate.
//
//   StepCache cache(model);
//   StepBounds bounds(&cache);
//   PIPELAB_ASSIGN_OR_RETURN(const StepLeast least, bounds.Least(config));
//
// Time: of each pipeline device its compute, after the forwards that must come before its first one
// and before the backwards that must come after its last one, beside which only their own weight
// gradients can run, along the edges of the model. Transfers, reductions and steps are left out.
// Memory: an even share of the state. Beside the state there must be room for what micro-batches
// keep: summed over all devices, bytes kept times how long they are kept are at most this room
// times the step (Little's law).
#ifndef PIPELAB_PIPELINES_SEARCH_STEP_BOUNDS_H_
#define PIPELAB_PIPELINES_SEARCH_STEP_BOUNDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/search/held_activations.h"
#include "pipelines/search/kept_units.h"
#include "pipelines/search/step_least.h"
#include "pipelines/step/step_cache.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

class StepBounds {
 public:
  // The cache must outlive it.
  explicit StepBounds(StepCache* cache);

  // The time in so much memory of a device beside the least state; none: as much as there must be.
  // The memory is what a device keeps beside its state when the loss of a micro-batch is there, if
  // all have as much of it.
  absl::StatusOr<StepLeast> Least(const StepConfig& config,
                                  absl::optional<Bytes> free = absl::nullopt);
  // The time of all schedules of the grid, with the best of these exchanges: what a device computes
  // if all have as much and nothing is computed again.
  absl::StatusOr<Nanoseconds> LeastWork(const StepConfig& grid,
                                        const std::vector<Exchanges>& exchanges);
  // The same of the grids of a division that have micro-batches of these sizes, so many samples in
  // all; 0 where nothing says that large passes are no slower than several small ones.
  absl::StatusOr<Nanoseconds> LeastWorkOfSizes(const StepConfig& division,
                                               const std::vector<int64_t>& sizes, int64_t samples,
                                               const std::vector<Exchanges>& exchanges);
  Bytes LeastState(const StepConfig& config) const;
  // The largest stage has so many units, by its cut or its layout.
  absl::StatusOr<int> MostUnits(const StepConfig& config);
  // True if a rule before the configuration's (CutRule) makes the same stages.
  absl::StatusOr<bool> IsCutByAnother(StepConfig config);
  // A device needs so much beside its state in any schedule of the grid, with the best of these
  // ways to recompute: what one unit keeps.
  absl::StatusOr<Bytes> LeastKeptOfGrid(const StepConfig& grid,
                                        const std::vector<Recompute>& recompute);
  // The same, and the time, with the best of these exchanges: as Least for schedules. Without
  // `free` the time alone, as LeastWork.
  absl::StatusOr<StepLeast> LeastOfGrid(const StepConfig& grid,
                                        const std::vector<Exchanges>& exchanges,
                                        const std::vector<Recompute>& recompute,
                                        absl::optional<Bytes> free);

  // What a bound must know of a schedule; the same for all numbers of micro-batches.
  struct ScheduleShape {
    int stages = 0, replicas = 1;
    std::vector<std::vector<int>> held;  // [device] stages
    std::vector<bool> recompute;         // [stage]
    bool whole = true;                   // samples: slices have costs of their own
    bool splits = false;                 // backwards have parts
    bool keeps = false;                  // activations stay on their device until their backward
  };

 private:
  struct UnitEdge {
    int from = 0, to = 0;  // units of a cut (stage_cut.h)
    bool gradient = false;
  };
  struct StageLeast {
    UnitTime time;
    // The times of the forwards on the longest way to it, and of the backwards on the longest way
    // back from it: whole ones, and of input gradients alone.
    Nanoseconds before, after, after_inputs;
    double kept = 0;  // bytes of a micro-batch
  };
  // The stages are those of the cut that PredictStep makes.
  struct CutCosts {
    std::vector<StageLeast> stages;
    // Byte-nanoseconds of a micro-batch on all stages, with whole backwards and with input
    // gradients alone; 0 where units are no chain.
    double held = 0, held_for_inputs = 0;
    bool knows_kept = false;
  };
  absl::StatusOr<const CutCosts*> CostsOfStages(const StepConfig& config, int stages);
  const std::vector<UnitEdge>& EdgesOfUnits(CutRule rule);
  void SetWays(const StepConfig& config, const std::vector<int>& cut, CutCosts* costs);
  absl::Status SetHeld(const StepConfig& config, const std::vector<int>& cut, CutCosts* costs);
  // With a configuration of the grid for each of the exchanges that may be the best.
  absl::Status ForEachExchange(const StepConfig& grid, const std::vector<Exchanges>& exchanges,
                               absl::FunctionRef<absl::Status(const StepConfig&)> look);
  // With nothing recomputed; and selectively, where that is one of these ways.
  absl::Status ForEachGraph(StepConfig c, const std::vector<Recompute>& recompute,
                            absl::FunctionRef<absl::Status(const StepConfig&)> look);
  absl::StatusOr<const ScheduleShape*> Shape(const StepConfig& config);
  // A device keeps so much of micro-batches at some time.
  Bytes LeastKept(const StepConfig& config, const ScheduleShape& shape, const CutCosts& costs);

  StepCache& cache_;
  const StepModel& model_;
  KeptUnits kept_;
  HeldActivations activations_;
  int64_t parameters_ = 0, experts_ = 0;  // of all, those that experts divide
  bool larger_is_faster_ = false;         // of equal operations
  // By size, recompute, rebuilt blocks, the units of each stage (StepCache::UnitsOf); by scheme,
  // pipeline, virtual stages, replicas, recompute.
  absl::node_hash_map<
      std::tuple<StepCache::SizeKey, Recompute, RebuiltPart, const std::vector<int>*>, CutCosts>
      stages_;
  std::map<std::tuple<std::string, int, int, int, Recompute>, ScheduleShape> shapes_;
  std::map<CutRule, std::vector<UnitEdge>> edges_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_STEP_BOUNDS_H_
