// Plans of chains of stages for other systems; for Megatron-LM, step/megatron_layout.h.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::string csv, PyTorchCsv(pipeline));
//   // a row a pipeline rank: 0F0,0F1,0B0,... (PyTorch's schedule CSV)
//
// Errors: InvalidArgument saying what the other system has no words for.
#ifndef PIPELAB_PIPELINES_PLANNERS_PLAN_EXPORT_H_
#define PIPELAB_PIPELINES_PLANNERS_PLAN_EXPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "pipelines/planners/plan_pipeline.h"

namespace pipelab {

// The schedule of one of the plan's copies, one rank for each stage: stages must have equally many,
// and micro-batches of one size. PyTorch's own data parallelism is around such a pipeline.
absl::StatusOr<std::string> PyTorchCsv(const PlanPipeline& pipeline);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_PLAN_EXPORT_H_
