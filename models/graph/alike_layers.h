// Layers that cost the same, such as the attention of all blocks of a transformer: what is worked
// out for one is known of all.
//
//   const std::vector<int> first = FirstAlike(graph);
//   first[5];        // the first layer that is like layer 5: 5 itself, if none before it is
#ifndef PIPELAB_MODELS_GRAPH_ALIKE_LAYERS_H_
#define PIPELAB_MODELS_GRAPH_ALIKE_LAYERS_H_

#include <vector>

#include "models/graph/layer_spec.h"

namespace pipelab {

// [layer] The first that has its kind, attributes, shapes and parameters but for their names, the
// same operations on some samples, and inputs that are alike in all this. Layers without a kind,
// which say their costs themselves, are like none.
std::vector<int> FirstAlike(const ModelGraph& graph);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_ALIKE_LAYERS_H_
