#include "models/specs/gpt_head_spec.h"

#include <algorithm>

#include "glog/logging.h"
#include "models/graph/cost_math.h"
#include "models/specs/own_operations.h"

namespace pipelab {
namespace {

// Rows of C, V logits each, of one device. The order of allocations is in gpt_head.cc. Devices that
// have some of the words each compute a row's largest logit, the sum of exponentials and the
// target's logit together, and keep what makes the softmax whole: a number a row.
LayerCosts HeadCosts(const SplitRows& rows, int64_t c, int64_t v, NormKind norm, bool some_words,
                     bool table_bias, NumberWidth width) {
  const int64_t m = rows.all;
  const Bytes statistics = FloatBytes(NormStatistics(norm) * rows.own);
  const Bytes row = FloatBytes(m), mc = width(m * c), mv = width(m * v), none;
  const Bytes own = width(rows.own * c);
  LayerCosts costs;
  costs.forward = MatmulFlops(m, v, c);
  costs.backward_input = costs.forward;
  costs.backward_weight = costs.forward;
  costs.output = Bytes(0);
  costs.kept = statistics + mv + (some_words ? row : none);
  // The logits' gradient; the gradient of the norm's output.
  costs.kept_for_weight = statistics + mv + own;
  // The norm's output beside the logits and their sums, or some rows of a bias; or all of its rows
  // beside the own.
  const Bytes biases = table_bias ? RowsAtOnceBytes(m, v, width) : none;
  costs.forward_peak =
      statistics + mc +
      std::max({mv + (some_words ? row * 3 : none), mv + biases, rows.scattered() ? own : none});
  costs.backward_input_peak = mc + own;  // its gradient and dx, or its sums
  // The weight part frees as much as it allocates, before it does; but for gathered rows.
  costs.backward_weight_peak = rows.scattered() ? mc : none;
  // dx, and the norm's own rows beside all.
  costs.backward_peak =
      std::max(costs.backward_input_peak, rows.scattered() ? mc + own * 2 - row : none);
  return costs;
}

LayerOperations HeadOperations(const SplitRows& rows, int64_t c, int64_t v, bool table_bias) {
  const int64_t m = rows.all, own = rows.own;
  LayerOperations ops;
  AddMemory(OperationKind::kLayerNorm, 2 * own * c, 3 * own * c, &ops);
  AddMatmul(m, v, c, &ops);
  AddMemory(OperationKind::kLoss, 2 * m * v, 2 * m * v, &ops);
  AddOwnNormWeights(own * c, /*again=*/true, &ops);
  if (table_bias) {  // passes of their own
    ops.forward.push_back(OwnOperation(OperationKind::kElementwise, 3 * m * v));
    ops.backward_weight.push_back(OwnOperation(OperationKind::kElementwise, m * v));
  }
  return ops;
}

// Rows of C, all of them.
TensorCollectives HeadCollectives(TensorParallel split, int64_t m, int64_t c, NumberWidth width) {
  TensorCollectives collectives;
  AddGather(split, width(m * c), &collectives.forward);
  if (split.degree > 1) {  // the largest logit, the sum of exponentials, the target's logit
    collectives.forward.insert(collectives.forward.end(), 3,
                               {Collective::kAllReduce, FloatBytes(m)});
  }
  AddSum(split, width(m * c), &collectives.backward_input);
  AddGather(split, width(m * c), &collectives.backward_weight);
  return collectives;
}

}  // namespace

LayerSpec GptHeadSpec(const GptHeadSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kGptHead;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.tokens, s.hidden}};
  layer.parameters = NormParameters(s.norm, s.name, s.hidden);
  const bool table_bias = s.output_bias && !s.tie.empty();
  if (s.output_bias && !table_bias) {
    layer.parameters.push_back(
        {s.name + "/w", {s.hidden, s.vocabulary}, InitKind::kNormal, s.stddev, "", 1});
  } else {
    layer.parameters.push_back(
        {s.name + "/table", {s.vocabulary, s.hidden}, InitKind::kNormal, s.stddev, s.tie, 0});
  }
  if (s.output_bias) {
    layer.parameters.push_back({s.name + "/b", {s.vocabulary}, InitKind::kZeros, 0, "", 0});
  }
  layer.attributes = {{"output_bias", s.output_bias && !table_bias ? 1 : 0}};
  if (table_bias) layer.attributes[kTableBias] = 1;
  layer.data = {{kTargets, FieldType::kId, {s.tokens}, s.vocabulary, s.padded_targets}};
  const auto rows = [t = s.tokens](int64_t samples, TokenSlice slice, TensorParallel split) {
    return SplitRows(samples * slice.CountOf(t), split);
  };
  layer.split.operations = [rows, c = s.hidden, v = s.vocabulary, table_bias](
                               int64_t samples, TokenSlice slice, TensorParallel split) {
    return HeadOperations(rows(samples, slice, split), c, v / split.degree, table_bias);
  };
  layer.split.dimensions = {{"words", s.vocabulary}, {"tokens", s.tokens, true}};
  layer.split.context = ContextUse::kRows;
  SetCosts(&layer, [rows, c = s.hidden, v = s.vocabulary, norm = s.norm, table_bias](
                       NumberWidth width, LayerSpec* l) {
    l->split.costs = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      return HeadCosts(rows(samples, slice, split), c, v / split.degree, norm, split.degree > 1,
                       table_bias, width);
    };
    l->split.collectives = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      return HeadCollectives(split, rows(samples, slice, split).all, c, width);
    };
    SetWholeCosts(l);
  });
  return layer;
}

}  // namespace pipelab
