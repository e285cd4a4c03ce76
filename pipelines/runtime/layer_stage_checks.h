// What LayerStage::Create refuses, apart from its code. Private to the target.
#ifndef PIPELAB_PIPELINES_RUNTIME_LAYER_STAGE_CHECKS_H_
#define PIPELAB_PIPELINES_RUNTIME_LAYER_STAGE_CHECKS_H_

#include "absl/status/status.h"
#include "models/graph/layer_spec.h"
#include "pipelines/runtime/layer_stage.h"

namespace pipelab {

// The range lies in the graph, the samples divide among the group, there is one slice.
absl::Status CheckStageSizes(const ModelGraph& graph, int begin, int end,
                             const LayerStageOptions& options);

// The layers [begin, end) each take the one before; the last of the graph, and no other, is a loss.
absl::Status CheckStageChain(const ModelGraph& graph, int begin, int end);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_LAYER_STAGE_CHECKS_H_
