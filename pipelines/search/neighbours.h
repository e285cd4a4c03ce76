// The fastest configurations near one: its schedule, micro-batch, grid, recomputation or sharding
// is another, one or two of them at a time.
//
//   SearchRequest space;
//   space.methods = {MethodOf("1f1b"), MethodOf("interleaved")};   // what may be
//   space.top = 5;
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<RankedStep> best, NeighboursOf(&cache, config, space));
//
// A search (search.h) that takes these alone, on as many devices and with the same batch. So the
// number of data-parallel copies and of micro-batches follow. One of them may be the configuration
// itself, its stages cut by time.
#ifndef PIPELAB_PIPELINES_SEARCH_NEIGHBOURS_H_
#define PIPELAB_PIPELINES_SEARCH_NEIGHBOURS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/search/search.h"
#include "pipelines/step/step_cache.h"

namespace pipelab {

// Values that differ: schedule (with its stages of a device and groups), b, P, T, C, how these
// devices exchange, E, recomputation, sharding, sequence parallelism. What another value decides is
// not counted: schedules where one has no pipeline, sequence parallelism where one has T = 1, and
// whether sharded weights are let go between passes where one has a pipeline and one has none.
int ChangedValues(const StepConfig& a, const StepConfig& b);

// Fastest first, `space.top` in all. Devices and batch are the configuration's. Errors as
// Search's; no neighbour is none.
absl::StatusOr<std::vector<RankedStep>> NeighboursOf(StepCache* cache, const StepConfig& config,
                                                     SearchRequest space, int most_changes = 2);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_NEIGHBOURS_H_
