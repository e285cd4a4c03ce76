// A planner's problem from a model's graph on a cluster: operators are its layers, or groups of
// them (blocks, cells), with the times of their passes on the cluster's device.
//
//   ModelProblemOptions options;
//   options.devices = 8;  options.micro_batch_size = 4;  options.batch_samples = 128;
//   options.micro_batch_sizes = {1, 2, 4, 8};         // for planners that choose the size
//   PIPELAB_ASSIGN_OR_RETURN(PlanProblem p, ModelProblem(graph, cluster, options));
//   PIPELAB_RETURN_IF_ERROR(FinishProblem(&p, "--model=mmt"));
//
// Objective kStageTime, seconds a micro-batch. An operator can be run plainly or with recomputing
// (its forward twice; its inputs are what it keeps). Parameters have value and gradient of 4 bytes
// each and two tensors of the optimizer. Bandwidth and latency are those of the level that joins
// all devices; levels are the network's up to there, the last as large as the devices need.
#ifndef PIPELAB_PIPELINES_PLANNERS_MODEL_PROBLEM_H_
#define PIPELAB_PIPELINES_PLANNERS_MODEL_PROBLEM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/cluster/device.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

struct ModelProblemOptions {
  NumberType type = NumberType::kFp32;
  int64_t devices = 1;
  int64_t micro_batch_size = 1;            // of the micro-batch that figures are of
  int64_t batch_samples = 0;               // a multiple of `micro_batch_size`; 0: one micro-batch
  std::vector<int64_t> micro_batch_sizes;  // PlanProblem::micro_batch_sizes
  // GroupedModel::group_of_layer (zoo/layer_groups.h); empty: each layer by itself. An operator is
  // called as its layer, or by the words between '/' that its layers' names begin with.
  std::vector<int> group_of_layer;
  bool recompute = true;  // whether there is that variant
  // Slices of tokens of a multiple of this, for TeraPipe's planner; 0: none. Divides the tokens.
  int64_t token_step = 0;
};

// InvalidArgument for sizes; NotFound naming the layer and what the device lacks.
absl::StatusOr<PlanProblem> ModelProblem(const ModelGraph& graph, const ClusterSpec& cluster,
                                         const ModelProblemOptions& options);

// The operators alone, with ids, layers, edges and variants but no costs and no machine: what a
// plan that was written to a file is read with (plan_json.h). FinishProblem has been called.
PlanProblem ModelOperators(const ModelGraph& graph, const std::vector<int>& group_of_layer);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_MODEL_PROBLEM_H_
