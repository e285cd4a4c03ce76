// A model as one device of a tensor-parallel group has it: parameters, and attributes such as the
// number of heads, are those of its part; shapes of inputs and outputs are the whole layer's, or
// with sequence or context parallelism those of its tokens (LayerSpec::rows, LayerSpec::context).
// With expert parallelism it has one of E equal shares of each layer's experts.
//
//   PIPELAB_RETURN_IF_ERROR(CheckTensorParallel(graph, {/*degree=*/2}));
//   const ModelGraph mine = MemberGraph(graph, {/*degree=*/2}, /*member=*/1);
//
// What it costs is what the whole graph says of a split of that degree (CostsOf); what the group
// sends is not the part's to say (LayerSplit::collectives of the whole). Layers that are not split
// are as they were. ParameterSpec::cut tells which elements of the whole a part has.
#ifndef PIPELAB_MODELS_GRAPH_TENSOR_MEMBER_H_
#define PIPELAB_MODELS_GRAPH_TENSOR_MEMBER_H_

#include <cstdint>

#include "models/graph/layer_spec.h"

namespace pipelab {

// The degrees divide what is divided: CHECKed. `experts`: which share of them, 0 to E - 1.
LayerSpec MemberLayer(const LayerSpec& layer, TensorParallel split, int64_t member,
                      ContextPart context = ContextPart(), int64_t experts = 0);
// With context parallelism of the device with tokens of part `context` as well.
ModelGraph MemberGraph(const ModelGraph& graph, TensorParallel split, int64_t member,
                       int64_t context = 0, int64_t experts = 0);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_TENSOR_MEMBER_H_
