// From a model and its partition to the cost table of its pipeline, with nothing allocated.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelPartition p, MakePartition(graph, stage_of_layer));
//   StageCostOptions options;
//   options.TakeSizes(schedule);                    // with schedule.stages = p.stages
//   PIPELAB_ASSIGN_OR_RETURN(CostTable costs,
//                            ComputeStageCosts(graph, p, /*micro_batch_size=*/4, options));
//   Simulate(program, costs);
//
// Times and memory are those of one device of a stage's group on its own samples, of which the
// fullest member has ceil(n / d).
//
// Memory is exact: what a stage of layers (pipelines/runtime/layer_stage.h) allocates, to the byte,
// pass by pass, since both follow stage_plan.h. A backward computes its layers from the last to the
// first, input part and weight part of each (fused) before the next begins; a stage's peak is the
// walk's highest point.
//
// Times are those of the layers' operations on a machine (layer_times.h), one after the other; a
// recompute takes as long as a forward. Where backwards rebuild blocks
// (ModelPartition::block_of_layer) they take the forwards of these layers more. Without a machine
// times are plain: flops at one rate, and times that were measured (models/graph/operation.h) as
// they are. On a machine that computes with 2 bytes a number, activations and what goes along edges
// have half the bytes; weights and gradients have those of StageCostOptions::state on all. A
// model of a narrower width (WithNumberWidth) has its own bytes, to the byte as well: it is not for
// such a machine.
//
// With tensor parallelism (models/graph/tensor_parallel.h) all of this is one device's of the
// group: its share of the parameters and of what is kept, its operations, and the group's
// collectives, which nothing runs beside. Messages have what a device has of an output: all rows,
// or with sequence parallelism its own. With context parallelism a sample here is one device's
// tokens of it: a group of C devices has C times the samples of its micro-batch.
#ifndef PIPELAB_PIPELINES_COST_STAGE_COSTS_H_
#define PIPELAB_PIPELINES_COST_STAGE_COSTS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "models/graph/batch_norm_copies.h"  // IWYU pragma: export
#include "models/graph/layer_spec.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/cost/stage_memo.h"
#include "pipelines/ir/schedule.h"
#include "tools/base/units.h"

namespace pipelab {

struct StageCostOptions {
  absl::optional<Machine> machine;
  FlopsPerSecond rate{100e9};  // where there is no machine
  // What the optimizer computes and how many tensors it keeps of each parameter: Adam's here; the
  // others' from StepFlopsPerParameter and StateNames (models/layers/optimizer.h).
  double step_flops_per_parameter = 13;
  int optimizer_tensors = 2;
  StateNumbers state;  // of a model with numbers of 4 bytes
  // The devices that compute each stage's layers together. Times and bytes are then those of one.
  TensorGroup tensor;
  // Tokens of each slice of a sample, for a schedule with token slices: the table then has each
  // slice's own costs. Empty, or one: whole samples.
  std::vector<int64_t> slices;
  // [stage] How many times `micro_batch_size` its micro-batches have
  // (Schedule::MicroBatchSize); empty: 1.
  std::vector<int> micro_batch_sizes;
  // [stage] How many devices share each of its micro-batches (Schedule::GroupSize); empty: 1.
  std::vector<int> group_sizes;
  // TimesInGraph of whole samples, where they are known; none: they are computed.
  std::function<absl::StatusOr<const LayerTimes*>(int layer)> layer_times;
  // Whether these normalise by the statistics of all their rows, which takes messages and memory.
  BatchNormCopies batch_norm = BatchNormCopies::kSynchronised;

  // Both of the schedule's stages.
  void TakeSizes(const Schedule& schedule);
};

// Stages are for one device's samples of a micro-batch of their own size, edges for a whole one of
// `micro_batch_size`.
// InvalidArgument for sizes below 1, no rate, slices that are not the model's samples or that a
// layer does not know, and a tensor-parallel degree that does not divide a layer; NotFound naming
// the layer and what the machine lacks.
// With a memo, stages without slices whose micro-batches have one size are computed once each.
absl::StatusOr<CostTable> ComputeStageCosts(const ModelGraph& graph,
                                            const ModelPartition& partition,
                                            int64_t micro_batch_size,
                                            const StageCostOptions& options,
                                            StageCostMemo* memo = nullptr);

// The costs of one stage and a slice, without the checks of sizes.
absl::StatusOr<StageCost> ComputeStageCost(const ModelGraph& graph, const ModelPartition& partition,
                                           int stage, int64_t micro_batch_size, TokenSlice slice,
                                           const StageCostOptions& options);

// With the model's own bytes a number.
StageMemory ComputeStageMemory(const ModelGraph& graph, const ModelPartition& partition, int stage,
                               int64_t samples, TokenSlice slice = TokenSlice(),
                               int optimizer_tensors = 2, TensorParallel split = TensorParallel());

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_STAGE_COSTS_H_
