// Lower bounds of a configuration's time and memory for any order of its actions: how a search
// knows which configurations it need not simulate.
//
//   StepCache cache(model);
//   StepBounds bounds(&cache);
//   PIPELAB_ASSIGN_OR_RETURN(Nanoseconds least, bounds.LeastTime(config));
//
// Time: of each pipeline device its compute, after the forwards that must come before its first one
// and before the backwards that must come after its last one, beside which only their own weight
// gradients can run, along the edges of the model. Transfers, reductions and steps are left out.
// Memory: an even share of the state.
#ifndef PIPELAB_PIPELINES_SEARCH_STEP_BOUNDS_H_
#define PIPELAB_PIPELINES_SEARCH_STEP_BOUNDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/step/step_cache.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

class StepBounds {
 public:
  // The cache must outlive it.
  explicit StepBounds(StepCache* cache);

  absl::StatusOr<Nanoseconds> LeastTime(const StepConfig& config);
  // The same of all schedules of the grid, with the best of these exchanges: what a device computes
  // if all have as much and nothing is computed again.
  absl::StatusOr<Nanoseconds> LeastWork(const StepConfig& grid,
                                        const std::vector<Exchanges>& exchanges);
  Bytes LeastState(const StepConfig& config) const;

  // What a bound must know of a schedule; the same for all numbers of micro-batches.
  struct ScheduleShape {
    int stages = 0, replicas = 1;
    std::vector<std::vector<int>> held;  // [device] stages
    std::vector<bool> recompute;         // [stage]
    bool whole = true;                   // samples: slices have costs of their own
    bool splits = false;                 // backwards have parts
  };

 private:
  struct UnitEdge {
    int from = 0, to = 0;  // units of a cut (stage_cut.h)
    bool gradient = false;
  };
  // [stage] Of the cut that PredictStep makes.
  struct CutCosts {
    std::vector<StageCost> stages;
    // Of the forwards on the longest way to it, and of the backwards on the longest way back from
    // it: whole ones, and of input gradients alone.
    std::vector<Nanoseconds> before, after, after_inputs;
  };
  absl::StatusOr<const CutCosts*> CostsOfStages(const StepConfig& config, int stages);
  const std::vector<UnitEdge>& EdgesOfUnits(CutRule rule);
  void SetWays(const StepConfig& config, const std::vector<int>& cut, CutCosts* costs);
  absl::StatusOr<const ScheduleShape*> Shape(const StepConfig& config);

  StepCache& cache_;
  const StepModel& model_;
  int64_t parameters_ = 0, experts_ = 0;  // of all, those that experts divide
  // By size, recompute, rebuilt blocks, stages, layout; by scheme, pipeline, virtual stages, replicas,
  // recompute.
  std::map<std::tuple<StepCache::SizeKey, Recompute, RebuiltPart, int, std::string>, CutCosts>
      stages_;
  std::map<std::tuple<std::string, int, int, int, Recompute>, ScheduleShape> shapes_;
  std::map<CutRule, std::vector<UnitEdge>> edges_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_STEP_BOUNDS_H_
