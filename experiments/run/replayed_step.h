// How long a step of `run` would take if each device had its own core.
//
//   PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds time,
//                            ReplayedStep(traces, graph, split, samples, *training));
#ifndef PIPELAB_EXPERIMENTS_RUN_REPLAYED_STEP_H_
#define PIPELAB_EXPERIMENTS_RUN_REPLAYED_STEP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "models/graph/tensor_parallel.h"
#include "pipelines/ir/trace.h"
#include "pipelines/runtime/training.h"
#include "tools/base/units.h"

namespace pipelab {

// The step that is replayed from the steps' traces, one per pipeline device: of the first member of
// each tensor-parallel group (TraceOfMember). A message, and each collective in a pass (of a
// tensor-parallel group, of a synchronised batch norm), takes what it takes here to hand something
// to another thread and wake it, which is measured. `samples`: of a micro-batch. 0 where the traces
// are not whole: of several processes, the first has all of them.
absl::StatusOr<Nanoseconds> ReplayedStep(const std::vector<Trace>& traces, const ModelGraph& graph,
                                         TensorParallel split, int64_t samples,
                                         const PipelineTraining& training);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_RUN_REPLAYED_STEP_H_
