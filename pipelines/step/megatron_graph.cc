#include "pipelines/step/megatron_graph.h"

#include <utility>

#include "models/specs/fused_sums.h"
#include "models/specs/launched_kernels.h"

namespace pipelab {

ProductInputs ProductInputsUnder(NumberType type) {
  return type == NumberType::kFp8 ? ProductInputs::kHalfAsWide : ProductInputs::kAsActivations;
}

ModelGraph MegatronGraph(ModelGraph graph, AttentionImplementation attention, NumberType type,
                         LossImplementation loss) {
  graph = WithMegatronActivations(WithMegatronKernels(std::move(graph), attention, loss),
                                  ProductInputsUnder(type));
  return type == NumberType::kFp8 ? WithFp8Casts(std::move(graph)) : graph;
}

ModelGraph MegatronCoreGraph(ModelGraph graph, AttentionImplementation attention, NumberType type,
                             LossImplementation loss) {
  graph = MegatronGraph(std::move(graph), attention, type, loss);
  return attention == AttentionImplementation::kFused ? WithFusedSums(std::move(graph)) : graph;
}

}  // namespace pipelab
