#include "models/specs/gpt_embedding_spec.h"

#include <algorithm>

#include "glog/logging.h"
#include "models/graph/cost_math.h"
#include "models/specs/own_operations.h"

namespace pipelab {
namespace {

// A group sums the rows that each device's words have; where rows are split by tokens, the sums of
// the device's own beside all.
LayerCosts EmbeddingCosts(const SplitRows& rows, int64_t positions, int64_t c, bool sinusoidal,
                          bool types, NumberWidth width) {
  LayerCosts costs;
  costs.output = width(rows.own * c);
  costs.kept_for_weight = costs.output;  // dy
  costs.forward_peak = costs.output;
  if (rows.scattered()) costs.forward_peak += width(rows.all * c);
  if (sinusoidal) costs.forward_peak += width(positions * c);
  if (rows.scattered()) costs.backward_weight_peak = width(rows.all * c);
  if (types) {  // some rows of it; a one for each row
    costs.forward_peak =
        std::max(costs.forward_peak, costs.output + RowsAtOnceBytes(rows.own, c, width));
    costs.backward_weight_peak = std::max(costs.backward_weight_peak, width(rows.own));
  }
  costs.backward_peak = costs.backward_weight_peak;
  return costs;
}

LayerOperations EmbeddingOperations(const SplitRows& rows, int64_t c, bool positions,
                                    int64_t degree) {
  const int64_t mc = rows.all * c;
  LayerOperations ops;
  // Rows, positions, sum; the latter two are of the own rows.
  ops.forward = {ElementwiseOperation((positions ? 3 : 2) * mc)};
  if (rows.scattered() && positions)
    ops.forward = {ElementwiseOperation(2 * mc), ElementwiseOperation(3 * rows.own * c)};
  // Added to the rows of the device's words.
  ops.backward_weight = {ElementwiseOperation(mc + 2 * mc / degree)};
  return ops;
}

}  // namespace

LayerSpec GptEmbeddingSpec(const GptEmbeddingSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kGptEmbedding;
  layer.output_shape = {s.tokens, s.hidden};
  layer.parameters = {
      {s.name + "/tokens", {s.vocabulary, s.hidden}, InitKind::kNormal, s.stddev, s.tie, 0},
  };
  const bool learned = s.positions == Positions::kLearned, types = s.types > 0;
  CHECK(learned || !types) << s.name << ": token types without learned positions";
  if (learned) {
    layer.parameters.push_back(
        {s.name + "/positions", {s.tokens, s.hidden}, InitKind::kNormal, s.stddev, ""});
  }
  if (types) {
    layer.parameters.push_back(
        {s.name + "/types", {s.types, s.hidden}, InitKind::kNormal, s.stddev, ""});
  }
  layer.attributes = {{"positions", static_cast<double>(s.positions)}};
  layer.data = {{s.field, FieldType::kId, {s.tokens}, s.vocabulary}};
  const auto rows = [t = s.tokens](int64_t samples, TokenSlice slice, TensorParallel split) {
    return SplitRows(samples * slice.CountOf(t), split);
  };
  const bool positions = s.positions != Positions::kNone;
  layer.split.operations = [rows, c = s.hidden, positions, types](int64_t samples, TokenSlice slice,
                                                                  TensorParallel split) {
    const SplitRows r = rows(samples, slice, split);
    LayerOperations ops = EmbeddingOperations(r, c, positions, split.degree);
    if (types) {
      ops.forward.push_back(ElementwiseOperation(3 * r.own * c));
      ops.backward_weight.push_back(ElementwiseOperation(r.own * c));
    }
    return ops;
  };
  layer.split.dimensions = {{"words", s.vocabulary}, {"tokens", s.tokens, true}};
  layer.split.context = ContextUse::kRows;
  const bool sinusoidal = s.positions == Positions::kSinusoidal;
  SetCosts(&layer, [rows, c = s.hidden, sinusoidal, types](NumberWidth width, LayerSpec* l) {
    l->split.costs = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      const SplitRows r = rows(samples, slice, split);
      return EmbeddingCosts(r, r.own / samples, c, sinusoidal, types, width);
    };
    l->split.collectives = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      const Bytes bytes = width(rows(samples, slice, split).all * c);
      TensorCollectives collectives;
      AddSum(split, bytes, &collectives.forward);
      AddGather(split, bytes, &collectives.backward_weight);
      return collectives;
    };
    SetWholeCosts(l);
  });
  return layer;
}

}  // namespace pipelab
