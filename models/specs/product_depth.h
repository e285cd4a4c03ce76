// Products y_MN = x_MK w_KN that take as long as if their sums had so many terms more. That is what
// a tile of y costs beside its terms, to start and to write.
//
//   graph = WithProductDepth(std::move(graph), {/*half=*/320, /*others=*/640});
#ifndef PIPELAB_MODELS_SPECS_PRODUCT_DEPTH_H_
#define PIPELAB_MODELS_SPECS_PRODUCT_DEPTH_H_

#include "models/graph/layer_spec.h"

namespace pipelab {

// Terms more: of products in 2 bytes where others take 1 (Operation::half), and of all others.
struct ProductDepth {
  double half = 0, others = 0;
};

// Flops of operations alone: those of the model stay.
ModelGraph WithProductDepth(ModelGraph graph, ProductDepth more);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_PRODUCT_DEPTH_H_
