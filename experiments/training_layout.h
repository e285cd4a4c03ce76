// Which layers, edges and token slices the stages of a pipeline have: what a training
// (PipelineTraining) and a run on paper make of their options before they make a program.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelPartition partition,
//                            ChoosePartition(graph, schedule.num_stages(), samples, "3,2,2,3"));
//   lowering.stages = partition.stages;
//
// Errors: InvalidArgument naming the option.
#ifndef PIPELAB_EXPERIMENTS_TRAINING_LAYOUT_H_
#define PIPELAB_EXPERIMENTS_TRAINING_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

// Stages as `layout` says, or ranges of layers in graph order, balanced by flops (forward +
// backward).
absl::StatusOr<ModelPartition> ChoosePartition(const ModelGraph& graph, int num_stages,
                                               int64_t micro_batch_samples,
                                               absl::string_view layout);

// The same, balanced by any cost of each layer.
absl::StatusOr<ModelPartition> ChooseBalancedPartition(const ModelGraph& graph, int num_stages,
                                                       absl::Span<const double> layer_costs,
                                                       absl::string_view layout);

// Of the layers that the caller put into stages, one by one or, where that is empty, as `layout`.
absl::StatusOr<ModelPartition> GivenPartition(const ModelGraph& graph,
                                              const std::vector<int>& stage_of_layer,
                                              absl::string_view layout);

// The tokens of each of the schedule's slices, `lengths` where given; none for whole samples of
// `tokens`.
absl::StatusOr<std::vector<int64_t>> ChooseSlices(const Schedule& schedule, int64_t tokens,
                                                  const std::vector<int64_t>& lengths);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAINING_LAYOUT_H_
