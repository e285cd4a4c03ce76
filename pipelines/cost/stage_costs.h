// From a model and its partition to the cost table of its pipeline, with nothing allocated.
//
//   PIPELAB_ASSIGN_OR_RETURN(CostTable costs, ComputeStageCosts(graph, first_layers,
//   /*micro_batch_samples=*/4,
//                                                                StageCostOptions()));
//   Simulate(program, costs);
//
// Memory is exact: what a stage of layers (pipelines/runtime/layer_stage.h) allocates, to the byte,
// pass by pass. Times are plain: matmul flops at one rate. A backward computes its layers from the
// last to the first, input part and weight part of each (fused) before the next begins; a stage's
// peak is the walk's highest point.
#ifndef PIPELAB_PIPELINES_COST_STAGE_COSTS_H_
#define PIPELAB_PIPELINES_COST_STAGE_COSTS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cost/cost_table.h"
#include "tools/base/units.h"

namespace pipelab {

struct StageCostOptions {
  FlopsPerSecond rate{100e9};
  // Adam, counted off its formulas (Kingma and Ba 2015, algorithm 1, with both corrections folded
  // into the rate): two moments of 3 and 4, a root, a scale, a sum, a quotient, a product, a
  // difference.
  double step_flops_per_parameter = 13;
};

// `graph` is a chain, `first_layers` a partition of it (plan/partition.h). InvalidArgument names
// what is not so.
absl::StatusOr<CostTable> ComputeStageCosts(const ModelGraph& graph,
                                            absl::Span<const int> first_layers,
                                            int64_t micro_batch_samples,
                                            const StageCostOptions& options);

// The memory of the layers [begin, end) as one stage.
StageMemory ComputeStageMemory(const ModelGraph& graph, int begin, int end, int64_t samples);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_STAGE_COSTS_H_
