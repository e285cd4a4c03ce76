// Costs of passes that exchange attention (pipelines/ir/slice_exchange.h).
//
//   PIPELAB_RETURN_IF_ERROR(AddExchangeCosts(graph, partition, micro_batch_size, options, program,
//                                            &table));
//   table.exchanges.costs[table.exchanges.of_pass[i]].forward;       // of program.exchanges[i]
//
// A pass takes as long as its own attention and that which it computes for others. What it sends
// runs beside, over the way between the pipeline's ends (TensorGroup::context_hop), and counts
// where it is longer. Memory and bytes are those of the layers that run
// (models/specs/slice_attention_spec.h). What is not simulated: that the passes of a slot wait
// for one another in each of their layers.
#ifndef PIPELAB_PIPELINES_COST_EXCHANGE_COSTS_H_
#define PIPELAB_PIPELINES_COST_EXCHANGE_COSTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/ir/program.h"

namespace pipelab {

// `options` are those of the table. InvalidArgument where slices are of unequal lengths, stages
// have unequal numbers of attention layers, or these are unequal, have windows, or cannot exchange.
absl::Status AddExchangeCosts(const ModelGraph& graph, const ModelPartition& partition,
                              int64_t micro_batch_size, const StageCostOptions& options,
                              const Program& program, CostTable* table);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_EXCHANGE_COSTS_H_
