#include "models/specs/gpt_mlp_spec.h"

#include <algorithm>

#include "models/graph/cost_math.h"
#include "models/specs/own_operations.h"

namespace pipelab {
namespace {

// Rows of C; F inner columns, of one device. The order of allocations is in gpt_mlp.cc; where rows
// are split by tokens, all of them are there from a gather to the product that takes them, or until
// their sums are scattered.
LayerCosts MlpCosts(const SplitRows& rows, int64_t c, int64_t f, bool dropout, NumberWidth width) {
  const int64_t m = rows.all;
  const Bytes statistics = FloatBytes(2 * rows.own);  // mean and reciprocal deviation
  const Bytes mc = width(m * c), mf = width(m * f), own = width(rows.own * c), none;
  LayerCosts costs;
  costs.forward = 2 * MatmulFlops(m, f, c);
  costs.backward_input = costs.forward;
  costs.backward_weight = costs.forward;
  costs.output = own;
  costs.kept = statistics + mf;
  // h and its gradient; the branch's gradient and that of the norm's output.
  costs.kept_for_weight = statistics + mf * 2 + mc + own;
  // At the second product: h, gelu(h), the branch's output; or that and its sums.
  costs.forward_peak = statistics + mf + mc + std::max(mf, rows.scattered() ? own : none);
  // At the gradient of the norm: dh, its gradient, dx; with dropout the branch's gradient is not dy
  // itself. Or at the sums of the norm's gradient, beside the branch's.
  costs.backward_input_peak = mf + (rows.scattered() ? mc * 2 + own : mc * (dropout ? 3 : 2));
  costs.backward_peak = costs.backward_input_peak;
  // The weight part allocates only after it has freed more.
  costs.backward_weight_peak = Bytes(0);
  return costs;
}

// Norm, product, GELU, product, residual; the gradients of norm and residual are one sum.
LayerOperations MlpOperations(const SplitRows& rows, int64_t c, int64_t f) {
  const int64_t m = rows.all, own = rows.own;
  LayerOperations ops;
  AddMemory(OperationKind::kLayerNorm, 2 * own * c, 4 * own * c, &ops);
  AddMatmul(m, f, c, &ops);
  AddMemory(OperationKind::kGelu, 2 * m * f, 3 * m * f, &ops);
  AddMatmul(m, c, f, &ops);
  AddElementwise(3 * own * c, 0, &ops);
  AddOwnNormAndResidual(own * c, &ops);
  ops.backward_weight.push_back(OwnOperation(OperationKind::kGelu, 2 * m * f));  // again
  return ops;
}

}  // namespace

LayerSpec GptMlpSpec(const GptMlpSizes& s) {
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kGptMlp;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.tokens, s.hidden}};
  layer.output_shape = {s.tokens, s.hidden};
  layer.parameters = {
      {s.name + "/gamma", {s.hidden}, InitKind::kOnes, 0, ""},
      {s.name + "/beta", {s.hidden}, InitKind::kZeros, 0, ""},
      {s.name + "/w1", {s.hidden, s.inner}, InitKind::kNormal, s.stddev, "", 1},
      {s.name + "/b1", {s.inner}, InitKind::kZeros, 0, "", 0},
      {s.name + "/w2", {s.inner, s.hidden}, InitKind::kNormal, s.projection_stddev, "", 0},
      {s.name + "/b2", {s.hidden}, InitKind::kZeros, 0, ""},
  };
  layer.attributes = {{"inner", static_cast<double>(s.inner)}, {"dropout", s.dropout}};
  const auto rows = [t = s.tokens](int64_t samples, TokenSlice slice, TensorParallel split) {
    return SplitRows(samples * slice.CountOf(t), split);
  };
  layer.split.operations = [rows, c = s.hidden, f = s.inner](int64_t samples, TokenSlice slice,
                                                             TensorParallel split) {
    return MlpOperations(rows(samples, slice, split), c, f / split.degree);
  };
  layer.split.dimensions = {{"inner columns", s.inner, false, "inner"}, {"tokens", s.tokens, true}};
  SetCosts(&layer, [rows, c = s.hidden, f = s.inner, dropout = s.dropout > 0](NumberWidth width,
                                                                              LayerSpec* l) {
    l->split.costs = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      return MlpCosts(rows(samples, slice, split), c, f / split.degree, dropout, width);
    };
    l->split.collectives = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      return BranchCollectives(split, width(rows(samples, slice, split).all * c));
    };
    SetWholeCosts(l);
  });
  return layer;
}

}  // namespace pipelab
