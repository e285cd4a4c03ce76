// What the configurations of one model on one cluster have in common, worked out once: a search
// looks at thousands of grids that share their stages, times and schedules.
//
//   GridCache cache(model);
//   PIPELAB_ASSIGN_OR_RETURN(const GridStages stages, cache.StagesOf(config, /*stages=*/16));
//   stages.costs->stages[0].forward;        // of one micro-batch on one device
//   PIPELAB_ASSIGN_OR_RETURN(GridPoint point, EvaluateGrid(&cache, config));  // grid_point.h
//
// Nothing in it depends on what was asked before. Pointers hold as long as the cache does, but for
// those of ScheduleOf.
#ifndef PIPELAB_PIPELINES_PLAN_GRID_CACHE_H_
#define PIPELAB_PIPELINES_PLAN_GRID_CACHE_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/plan/grid_config.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/units.h"

namespace pipelab {

// A model cut into stages (grid_cut.h).
struct GridStages {
  const ModelPartition* partition = nullptr;
  const std::vector<Tie>* ties = nullptr;
  // Of one device of a tensor-parallel group that computes whole micro-batches. Without links.
  const CostTable* costs = nullptr;
};

class GridCache {
 public:
  // Keeps a copy; what the model points to must outlive the cache.
  explicit GridCache(const GridModel& model) : model_(model) {}
  GridCache(const GridCache&) = delete;
  GridCache& operator=(const GridCache&) = delete;

  const GridModel& model() const { return model_; }
  Machine machine() const { return {model_.cluster->device, model_.type}; }

  // [group] GroupTimes of grid_cut.h.
  absl::StatusOr<const std::vector<StageCost>*> GroupTimesOf(const GridConfig& config);
  // [stage] Its number of groups: CutGroups of grid_cut.h.
  absl::StatusOr<const std::vector<int>*> GroupsOf(const GridConfig& config, int stages);
  absl::StatusOr<GridStages> StagesOf(const GridConfig& config, int stages);
  // The schedule of one pipeline, with stages in a chain: a device for each of config.pipeline.
  // Holds until the next call. Errors are MakeSchedule's.
  absl::StatusOr<const Schedule*> ScheduleOf(const GridConfig& config);
  // Of a step of `samples`: products of forward and backward.
  Flops ModelFlops(int64_t samples);

 private:
  // Tensor-parallel degree, sequence parallelism, samples.
  using SizeKey = std::tuple<int, bool, int64_t>;
  struct Cut {
    ModelPartition partition;
    std::vector<Tie> ties;
  };

  static SizeKey SizeOf(const GridConfig& c) {
    return {c.tensor, c.sequence_parallel, c.micro_batch_samples};
  }
  absl::StatusOr<const Cut*> CutOf(const std::vector<int>& groups);

  const GridModel model_;
  std::map<SizeKey, std::vector<StageCost>> group_times_;
  std::map<std::tuple<SizeKey, bool, int>, std::vector<int>> groups_;  // and recompute, stages
  std::map<std::vector<int>, Cut> cuts_;                               // by groups
  std::map<std::pair<SizeKey, std::vector<int>>, CostTable> costs_;
  // By scheme, pipeline, loops, micro-batches, recompute.
  std::map<std::tuple<std::string, int, int, int, bool>, Schedule> schedules_;
  int64_t cached_actions_ = 0;
  std::map<int64_t, Flops> flops_;  // by samples
};

// Sizes that MakeSchedule takes, of a pipeline whose devices are groups of `members`.
SchemeParams SchemeSizes(const GridConfig& config, int members = 1);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLAN_GRID_CACHE_H_
