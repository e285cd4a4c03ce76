// What a stage's tensors weigh: what the times and the memory of a stage (stage_costs.h) are both
// worked out from.
#ifndef PIPELAB_PIPELINES_COST_STAGE_BYTES_H_
#define PIPELAB_PIPELINES_COST_STAGE_BYTES_H_

#include <cstdint>
#include <vector>

#include "models/graph/layer_spec.h"
#include "models/graph/tensor_parallel.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/cost/stage_plan.h"
#include "tools/base/units.h"

namespace pipelab {

// What the walks need of one stage.
struct StageBytes {
  const StagePlan& plan;
  std::vector<LayerCosts> costs;  // [place]
  std::vector<Bytes> data;        // [place] what it reads of the data set, while a pass runs
  std::vector<Bytes> value;       // [value]

  Bytes Released(StagePass pass, int place) const {
    Bytes sum;
    for (int v : plan.released(pass)[place]) sum += value[v];
    return sum;
  }
};

// `plan` must outlive the result.
StageBytes BytesOf(const ModelGraph& graph, const StagePlan& plan, int64_t samples,
                   TokenSlice slice, TensorParallel split);

// ComputeStageMemory of these bytes.
StageMemory MemoryOf(const ModelGraph& graph, const ModelPartition& partition, int stage,
                     const StageBytes& bytes, int optimizer_tensors, TensorParallel split);

// The values of parameters: those that several layers share count once.
int64_t NumValues(const ModelGraph& graph, const std::vector<int>& layers, TensorParallel split);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_STAGE_BYTES_H_
