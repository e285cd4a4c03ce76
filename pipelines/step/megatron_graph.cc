#include "pipelines/step/megatron_graph.h"

#include <utility>

#include "models/specs/kept_activations.h"

namespace pipelab {

ModelGraph MegatronGraph(ModelGraph graph, AttentionKernels attention, NumberType type) {
  return WithMegatronActivations(
      WithMegatronKernels(std::move(graph), attention),
      type == NumberType::kFp8 ? ProductInputs::kHalfAsWide : ProductInputs::kAsActivations);
}

}  // namespace pipelab
