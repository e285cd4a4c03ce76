#include "models/specs/product_depth.h"

#include "models/specs/change_costs.h"

namespace pipelab {

ModelGraph WithProductDepth(ModelGraph graph, ProductDepth more) {
  for (LayerSpec& layer : graph.layers) {
    ChangeOperations(&layer, [more](int64_t, TensorParallel, LayerOperations* ops) {
      for (auto* pass : {&ops->forward, &ops->backward_input, &ops->backward_weight}) {
        for (Operation& o : *pass) {
          if (o.kind != OperationKind::kMatmul || o.k == 0) continue;
          o.flops = (1 + (o.half ? more.half : more.others) / static_cast<double>(o.k)) * o.flops;
        }
      }
    });
  }
  return graph;
}

}  // namespace pipelab
