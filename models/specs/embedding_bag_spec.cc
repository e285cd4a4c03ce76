#include "models/specs/embedding_bag_spec.h"

#include "models/graph/cost_math.h"

namespace pipelab {

LayerSpec EmbeddingBagSpec(const EmbeddingBagSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kEmbeddingBag;
  layer.output_shape = {1, s.width};
  layer.parameters = {{s.name + "/table", {s.rows, s.width}, InitKind::kNormal, s.stddev, ""}};
  layer.attributes = {{"mean", s.mean ? 1 : 0}};
  layer.data = {{s.field, FieldType::kId, {s.ids}, s.rows, /*padded=*/true}};
  layer.operations = [width = s.width, ids = s.ids](int64_t samples, TokenSlice) {
    LayerOperations ops;
    ops.forward = {ElementwiseOperation(samples * (ids + 1) * width)};
    ops.backward_weight = {ElementwiseOperation(samples * (2 * ids + 1) * width)};
    return ops;
  };
  SetCosts(&layer, [columns = s.width](NumberWidth width, LayerSpec* l) {
    l->costs = [=](int64_t samples) {
      LayerCosts costs;
      costs.output = width(samples * columns);
      costs.kept_for_weight = costs.output;  // dy
      costs.forward_peak = costs.output;
      return costs;
    };
  });
  return layer;
}

}  // namespace pipelab
