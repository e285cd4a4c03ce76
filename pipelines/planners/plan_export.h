// Plans of chains of stages for other systems.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::string layout, MegatronLayout(graph, pipeline.partition));
//   // "Et*3|(t*4|)*2t*3L", for --pipeline-model-parallel-layout of Megatron-LM
//   PIPELAB_ASSIGN_OR_RETURN(std::string csv, PyTorchCsv(pipeline));
//   // a row a pipeline rank: 0F0,0F1,0B0,... (PyTorch's schedule CSV)
//
// Errors: InvalidArgument saying what the other system has no words for.
#ifndef PIPELAB_PIPELINES_PLANNERS_PLAN_EXPORT_H_
#define PIPELAB_PIPELINES_PLANNERS_PLAN_EXPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/planners/plan_pipeline.h"

namespace pipelab {

// Stages are parted by '|': E is the embedding (the first layer), t a Transformer layer (its
// layers' names begin with the same word up to a '/'), L the loss (the last layer). Runs of t are
// "t*4", runs of equal stages "(t*4|)*2". Refused: a model of other layers, a Transformer layer in
// two stages, stages that are not ranges.
absl::StatusOr<std::string> MegatronLayout(const ModelGraph& graph,
                                           const ModelPartition& partition);

// Of one of the plan's copies, one rank a stage: stages must have equally many, and micro-batches
// of one size. PyTorch's own data parallelism is around such a pipeline.
absl::StatusOr<std::string> PyTorchCsv(const PlanPipeline& pipeline);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_PLAN_EXPORT_H_
