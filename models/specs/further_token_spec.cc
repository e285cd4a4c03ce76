#include "models/specs/further_token_spec.h"

#include <algorithm>
#include <vector>

#include "models/graph/cost_math.h"
#include "models/specs/own_operations.h"

namespace pipelab {
namespace {

// A device keeps the tokens' embeddings, both norms' outputs and their statistics.
LayerCosts InputCosts(const SplitRows& rows, int64_t c, NormKind norm, int64_t degree,
                      NumberWidth width) {
  const Bytes own = width(rows.own * c), gathered = width(rows.scattered() ? rows.all * 2 * c : 0);
  LayerCosts costs;
  costs.forward = MatmulFlops(rows.all, c / degree, 2 * c);
  costs.backward_input = costs.backward_weight = costs.forward;
  costs.output = own;
  costs.kept = FloatBytes(2 * NormStatistics(norm) * rows.own) + own * 3;
  // Besides, the output's gradient and that of the norms' outputs.
  costs.kept_for_weight = costs.kept + own * 3;
  costs.forward_peak = costs.kept + gathered + width(rows.all * c);
  costs.backward_input_peak = std::max(width(rows.all * 2 * c), own * 3);
  costs.backward_weight_peak = gathered;
  costs.backward_peak = std::max(costs.backward_input_peak, own * 3 + gathered);
  return costs;
}

// Rows of the table, two norms, both side by side, and the product.
LayerOperations InputOperations(const SplitRows& rows, int64_t c, int64_t degree) {
  const int64_t own = rows.own * c, all = rows.all * c;
  LayerOperations ops;
  ops.forward = {ElementwiseOperation(2 * all)};
  ops.backward_weight = {ElementwiseOperation(all + 2 * all / degree)};
  for (int i = 0; i < 2; ++i) {
    AddMemory(OperationKind::kLayerNorm, 2 * own, 3 * own, &ops);
    AddOwnNormWeights(own, /*again=*/false, &ops);
  }
  AddElementwise(4 * own, 4 * own, &ops);
  AddMatmul(rows.all, c / degree, 2 * c, &ops);
  return ops;
}

TensorCollectives InputCollectives(TensorParallel split, int64_t m, int64_t c, NumberWidth width) {
  TensorCollectives all;
  AddSum(split, width(m * c), &all.forward);  // of the table's rows
  AddGather(split, width(2 * m * c), &all.forward);
  // Each device has some columns, of which all get all.
  if (split.degree > 1) all.forward.push_back({Collective::kAllGather, width(m * c)});
  AddGather(split, width(m * c), &all.backward_input);
  AddSum(split, width(2 * m * c), &all.backward_input);
  AddGather(split, width(2 * m * c), &all.backward_weight);
  return all;
}

}  // namespace

LayerSpec FurtherTokenSpec(const FurtherTokenSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kFurtherToken;
  layer.priced_alone = kFurtherHeads;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.tokens, s.hidden}};
  layer.output_shape = {s.tokens, s.hidden};
  layer.parameters = {
      {s.name + "/tokens", {s.vocabulary, s.hidden}, InitKind::kNormal, s.stddev, s.tie, 0}};
  for (const char* of : {"/state", "/token"}) {
    const std::vector<ParameterSpec> norm = NormParameters(s.norm, s.name + of, s.hidden);
    layer.parameters.insert(layer.parameters.end(), norm.begin(), norm.end());
  }
  layer.parameters.push_back(
      {s.name + "/w", {2 * s.hidden, s.hidden}, InitKind::kNormal, s.stddev, "", 1});
  layer.data = {{kTokens, FieldType::kId, {s.tokens}, s.vocabulary}};
  const auto rows = [t = s.tokens](int64_t samples, TokenSlice slice, TensorParallel split) {
    return SplitRows(samples * slice.CountOf(t), split);
  };
  layer.split.operations = [rows, c = s.hidden](int64_t samples, TokenSlice slice,
                                                TensorParallel split) {
    return InputOperations(rows(samples, slice, split), c, split.degree);
  };
  layer.split.dimensions = {
      {"words", s.vocabulary}, {"columns", s.hidden}, {"tokens", s.tokens, true}};
  layer.split.context = ContextUse::kRows;
  SetCosts(&layer, [rows, c = s.hidden, norm = s.norm](NumberWidth width, LayerSpec* l) {
    l->split.costs = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      return InputCosts(rows(samples, slice, split), c, norm, split.degree, width);
    };
    l->split.collectives = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      return InputCollectives(split, rows(samples, slice, split).all, c, width);
    };
    SetWholeCosts(l);
  });
  return layer;
}

}  // namespace pipelab
