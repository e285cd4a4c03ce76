// How a grid's model is cut into stages: between its groups, the longest stage as short as can be.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<StageCost> times, GroupTimes(model, {/*degree=*/8}, 1));
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<int> groups, CutGroups(times, /*recompute=*/true, 16));
//
// Both EvaluateGrid and the bounds of a search (grid_bounds.h) cut here, so that a bound is one of
// the configuration that is then simulated.
#ifndef PIPELAB_PIPELINES_PLAN_GRID_CUT_H_
#define PIPELAB_PIPELINES_PLAN_GRID_CUT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/plan/grid_config.h"

namespace pipelab {

// The devices of one tensor-parallel group, innermost on the cluster.
TensorGroup TensorGroupOf(const GridModel& model, TensorParallel split);

// [group] The times of one micro-batch on one device of a tensor-parallel group: forward, backward
// and recompute; memory is not filled in.
absl::StatusOr<std::vector<StageCost>> GroupTimes(const GridModel& model, TensorParallel split,
                                                  int64_t samples);

// [stage] Its number of groups. InvalidArgument where there are more stages than groups.
absl::StatusOr<std::vector<int>> CutGroups(const std::vector<StageCost>& times, bool recompute,
                                           int stages);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLAN_GRID_CUT_H_
