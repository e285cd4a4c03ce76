#include "models/specs/vocabulary_parts.h"

#include <algorithm>

#include "models/graph/cost_math.h"

namespace pipelab {
namespace {

// Rows of C, a part of v words. The order of allocations is in vocabulary_shard.cc.
LayerCosts ShardCosts(int64_t m, int64_t c, int64_t v, bool local, NumberWidth width) {
  const Bytes mc = width(m * c), mv = width(m * v), row = FloatBytes(m), none;
  LayerCosts costs;
  const Flops product = MatmulFlops(m, v, c);
  costs.forward = local ? product + product : product;
  costs.backward_input = local ? Flops() : product;
  costs.backward_weight = product;
  costs.output = width(m * (2 + (local ? 2 * c : 0)));
  costs.kept = mv + row;
  costs.kept_for_weight = local ? costs.kept : mv;  // the logits' gradient, in their place
  costs.forward_peak = mv + costs.output + row + std::max(row * 2, local ? mv + mc : none);
  if (!local) costs.backward_input_peak = costs.backward_peak = mc;
  return costs;
}

LayerOperations ShardOperations(int64_t m, int64_t c, int64_t v, bool local) {
  LayerOperations ops;
  AddMatmul(m, v, c, &ops);
  if (!local) {
    AddMemory(OperationKind::kLoss, 2 * m * v, 2 * m * v, &ops);
    return ops;
  }
  // The input's gradient comes with the forward, the softmax twice.
  ops.forward.push_back(MemoryOperation(OperationKind::kLoss, 4 * m * v));
  ops.forward.push_back(ops.backward_input[0]);
  ops.forward.push_back(ElementwiseOperation(6 * m * c));  // the target's row, and two copies
  ops.backward_input.clear();
  ops.backward_weight.push_back(MemoryOperation(OperationKind::kLoss, 2 * m * v));
  return ops;
}

// The costs of `parts` parts; with a local gradient all of their rows, summed.
LayerCosts LossCosts(int64_t m, int64_t parts, int64_t c, bool local, NumberWidth width) {
  LayerCosts costs;
  costs.kept = costs.forward_peak = FloatBytes(m);
  const Bytes each = width(m * (2 + (local ? 2 * c : 0)));
  const Bytes sum = width(m * c) * 2 + FloatBytes(2 * m);  // it, a term, its weights and places
  costs.backward_input_peak = costs.backward_peak = each * parts + (local ? sum : Bytes());
  return costs;
}

}  // namespace

LayerSpec VocabularyEmbeddingSpec(const VocabularyEmbeddingSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kVocabularyEmbedding;
  layer.output_shape = {s.tokens, s.hidden};
  layer.parameters = {
      {s.name + "/tokens", {s.part.words, s.hidden}, InitKind::kNormal, s.stddev, s.tie}};
  if (s.positions) {
    layer.parameters.push_back(
        {s.name + "/positions", {s.tokens, s.hidden}, InitKind::kNormal, s.stddev, ""});
  }
  layer.attributes = {{"first", static_cast<double>(s.part.first)}};
  layer.data = {{kTokens, FieldType::kId, {s.tokens}, s.part.vocabulary}};
  layer.operations = [mc = s.tokens * s.hidden, s](int64_t samples, TokenSlice) {
    const int64_t all = samples * mc;
    LayerOperations ops;
    // The rows that it has, zeros for the others, and positions; added to the rows that it has.
    ops.forward = {
        ElementwiseOperation((s.positions ? 2 : 1) * all + all * s.part.words / s.part.vocabulary)};
    ops.backward_weight = {ElementwiseOperation((s.positions ? 1 : 0) * all +
                                                3 * all * s.part.words / s.part.vocabulary)};
    return ops;
  };
  SetCosts(&layer, [mc = s.tokens * s.hidden](NumberWidth width, LayerSpec* l) {
    l->costs = [=](int64_t samples) {
      LayerCosts costs;
      costs.output = costs.forward_peak = width(samples * mc);
      costs.kept_for_weight = costs.output;  // dy
      return costs;
    };
  });
  return layer;
}

LayerSpec VocabularyShardSpec(const VocabularyShardSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kVocabularyShard;
  layer.inputs = {s.input};
  if (s.local_gradient) layer.detached = layer.inputs;
  layer.input_shapes = {{s.tokens, s.hidden}};
  layer.output_shape = {s.tokens, 2 + (s.local_gradient ? 2 * s.hidden : 0)};
  layer.parameters = {
      {s.name + "/table", {s.part.words, s.hidden}, InitKind::kNormal, s.stddev, s.tie}};
  layer.attributes = {{"first", static_cast<double>(s.part.first)},
                      {"local_gradient", s.local_gradient ? 1 : 0}};
  layer.data = {{kTargets, FieldType::kId, {s.tokens}, s.part.vocabulary, s.padded_targets}};
  layer.operations = [s](int64_t samples, TokenSlice) {
    return ShardOperations(samples * s.tokens, s.hidden, s.part.words, s.local_gradient);
  };
  SetCosts(&layer, [s](NumberWidth width, LayerSpec* l) {
    l->costs = [=](int64_t samples) {
      return ShardCosts(samples * s.tokens, s.hidden, s.part.words, s.local_gradient, width);
    };
  });
  return layer;
}

LayerSpec VocabularyLossSpec(const VocabularyLossSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kVocabularyLoss;
  if (s.local_gradient) {
    layer.inputs = {s.input};
    layer.input_shapes = {{s.tokens, s.hidden}};
  }
  const auto parts = static_cast<int64_t>(s.parts.size());
  const int64_t columns = 2 + (s.local_gradient ? 2 * s.hidden : 0);
  layer.inputs.insert(layer.inputs.end(), s.parts.begin(), s.parts.end());
  layer.input_shapes.resize(layer.inputs.size(), {s.tokens, columns});
  layer.input_use = InputUse::kInputGradient;
  layer.attributes = {{"local_gradient", s.local_gradient ? 1 : 0}};
  layer.data = {{kTargets, FieldType::kId, {s.tokens}, s.vocabulary, s.padded_targets}};
  layer.operations = [s, parts](int64_t samples, TokenSlice) {
    const int64_t m = samples * s.tokens;
    LayerOperations ops;
    AddMemory(OperationKind::kLoss, 2 * parts * m, 3 * parts * m, &ops);
    if (s.local_gradient) {
      ops.backward_input.push_back(ElementwiseOperation(4 * parts * m * s.hidden));
    }
    return ops;
  };
  SetCosts(&layer, [s, parts](NumberWidth width, LayerSpec* l) {
    l->costs = [=](int64_t samples) {
      return LossCosts(samples * s.tokens, parts, s.hidden, s.local_gradient, width);
    };
  });
  return layer;
}

}  // namespace pipelab
