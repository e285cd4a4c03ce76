#include "pipelines/step/megatron_graph.h"

#include <utility>

namespace pipelab {

ProductInputs ProductInputsUnder(NumberType type) {
  return type == NumberType::kFp8 ? ProductInputs::kHalfAsWide : ProductInputs::kAsActivations;
}

ModelGraph MegatronGraph(ModelGraph graph, AttentionKernels attention, NumberType type) {
  return WithMegatronActivations(WithMegatronKernels(std::move(graph), attention),
                                 ProductInputsUnder(type));
}

}  // namespace pipelab
