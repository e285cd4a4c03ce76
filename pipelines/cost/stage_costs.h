// From a model and its partition to the cost table of its pipeline, with nothing allocated.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelPartition p, MakePartition(graph, stage_of_layer));
//   PIPELAB_ASSIGN_OR_RETURN(CostTable costs,
//                            ComputeStageCosts(graph, p, /*micro_batch_samples=*/4, {}));
//   Simulate(program, costs);                       // of a schedule with stages = p.stages
//
// Memory is exact: what a stage of layers (pipelines/runtime/layer_stage.h) allocates, to the byte,
// pass by pass, since both follow stage_plan.h. Times are plain: matmul flops at one rate. A
// backward computes its layers from the last to the first, input part and weight part of each
// (fused) before the next begins; a stage's peak is the walk's highest point.
#ifndef PIPELAB_PIPELINES_COST_STAGE_COSTS_H_
#define PIPELAB_PIPELINES_COST_STAGE_COSTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/model_partition.h"
#include "tools/base/units.h"

namespace pipelab {

struct StageCostOptions {
  FlopsPerSecond rate{100e9};
  // What the optimizer computes and how many tensors it keeps of each parameter: Adam's here; the
  // others' from StepFlopsPerParameter and StateNames (models/layers/optimizer.h).
  double step_flops_per_parameter = 13;
  int optimizer_tensors = 2;
  // Tokens of each slice of a sample, for a schedule with token slices: the table then has each
  // slice's own costs. Empty, or one: whole samples.
  std::vector<int64_t> slices;
  // [stage] How many times `micro_batch_samples` its micro-batches have
  // (Schedule::MicroBatchSize); empty: 1.
  std::vector<int> micro_batch_sizes;
};

// Stages are for micro-batches of their own size, edges for one of `micro_batch_samples`.
// InvalidArgument for sizes below 1, no rate, and slices that are not the model's samples or that a
// layer does not know.
absl::StatusOr<CostTable> ComputeStageCosts(const ModelGraph& graph,
                                            const ModelPartition& partition,
                                            int64_t micro_batch_samples,
                                            const StageCostOptions& options);

StageMemory ComputeStageMemory(const ModelGraph& graph, const ModelPartition& partition, int stage,
                               int64_t samples, TokenSlice slice = TokenSlice(),
                               int optimizer_tensors = 2);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_STAGE_COSTS_H_
