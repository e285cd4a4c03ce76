#include "models/layers/gpt_embedding_spec.h"

#include "models/graph/cost_math.h"

namespace pipelab {

LayerSpec GptEmbeddingSpec(const GptEmbeddingSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kGptEmbedding;
  layer.output_shape = {s.tokens, s.hidden};
  layer.parameters = {
      {s.name + "/tokens", {s.vocabulary, s.hidden}, InitKind::kNormal, s.stddev, s.tie},
  };
  const bool learned = s.positions == Positions::kLearned;
  if (learned) {
    layer.parameters.push_back(
        {s.name + "/positions", {s.tokens, s.hidden}, InitKind::kNormal, s.stddev, ""});
  }
  layer.attributes = {{"positions", static_cast<double>(s.positions)}};
  layer.data = {{s.field, FieldType::kId, {s.tokens}, s.vocabulary}};
  layer.slice_costs = [t = s.tokens, c = s.hidden, learned](int64_t samples, TokenSlice slice) {
    LayerCosts costs;
    costs.output = FloatBytes(samples * slice.CountOf(t) * c);
    costs.kept_for_weight = costs.output;  // dy
    costs.forward_peak = costs.output;
    if (!learned) costs.forward_peak += FloatBytes(slice.CountOf(t) * c);
    return costs;
  };
  layer.operations = [t = s.tokens, c = s.hidden](int64_t samples, TokenSlice slice) {
    const int64_t m = samples * slice.CountOf(t);
    LayerOperations ops;
    ops.forward = {ElementwiseOperation(3 * m * c)};          // rows, positions, sum
    ops.backward_weight = {ElementwiseOperation(3 * m * c)};  // added to rows
    return ops;
  };
  layer.costs = [of = layer.slice_costs](int64_t samples) { return of(samples, TokenSlice()); };
  return layer;
}

}  // namespace pipelab
