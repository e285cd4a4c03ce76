#include "models/specs/gpt_mlp_spec.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"
#include "models/graph/cost_math.h"
#include "models/specs/own_operations.h"

namespace pipelab {
namespace {

struct MlpDimensions {
  int64_t c, statistics;  // columns of a row; what the norm keeps of it
  bool gated, dropout, residual;
};

// Rows of C; F inner columns, of one device. h, what the activation takes, has as many, or twice as
// many with a gate. The order of allocations is in gpt_mlp.cc; where rows are split by tokens, all
// of them are there from a gather to the product that takes them, or until their sums are
// scattered.
LayerCosts MlpCosts(const SplitRows& rows, const MlpDimensions& s, int64_t f, NumberWidth width) {
  const int64_t m = rows.all, c = s.c;
  const Bytes statistics = FloatBytes(s.statistics * rows.own);
  const Bytes mc = width(m * c), mf = width(m * f), own = width(rows.own * c), none;
  const Bytes mh = s.gated ? mf * 2 : mf;
  LayerCosts costs;
  costs.forward = (s.gated ? 3 : 2) * MatmulFlops(m, f, c);
  costs.backward_input = costs.forward;
  costs.backward_weight = costs.forward;
  costs.output = own;
  costs.kept = statistics + mh;
  // h and its gradient; the branch's gradient and that of the norm's output.
  const Bytes dx = s.statistics > 0 ? own : none;  // without a norm its gradient is dx
  costs.kept_for_weight = statistics + mh * 2 + mc + dx;
  // At the second product: h, gelu(h), the branch's output; or that and its sums.
  costs.forward_peak = statistics + mh + mc + std::max(mf, rows.scattered() ? own : none);
  // At the gradient of the norm: dh, its gradient, dx; with dropout the branch's gradient is not dy
  // itself. Or at the sums of the norm's gradient, beside the branch's.
  costs.backward_input_peak =
      mh + (rows.scattered() ? mc * 2 + own : mc * (s.dropout ? 2 : 1) + dx);
  costs.backward_peak = costs.backward_input_peak;
  // The weight part allocates only after it has freed more.
  costs.backward_weight_peak = Bytes(0);
  if (!s.gated) return costs;
  // The gated values' gradient beside that of h, and the branch's where it is not dy itself; in the
  // weight part the gated values, again.
  const Bytes branch = rows.scattered() || s.dropout ? mc : none;
  costs.backward_input_peak = std::max(costs.backward_input_peak, branch + mh + mf);
  costs.backward_weight_peak = mf;
  costs.backward_peak = std::max(costs.backward_input_peak, mh + mc + dx + mf);
  return costs;
}

// Norm, product, GELU or gate, product, residual; the gradients of norm and residual are one sum.
LayerOperations MlpOperations(const SplitRows& rows, const MlpDimensions& s, int64_t f) {
  const int64_t m = rows.all, own = rows.own, c = s.c;
  const int64_t forward = (s.gated ? 3 : 2) * m * f, backward = (s.gated ? 5 : 3) * m * f;
  LayerOperations ops;
  const bool norm = s.statistics > 0;
  if (norm) AddMemory(OperationKind::kLayerNorm, 2 * own * c, 4 * own * c, &ops);
  AddMatmul(m, s.gated ? 2 * f : f, c, &ops);
  AddMemory(OperationKind::kGelu, forward, backward, &ops);
  AddMatmul(m, c, f, &ops);
  if (s.residual) AddElementwise(3 * own * c, 0, &ops);
  AddOwnNormAndResidual(own * c, &ops, s.residual, norm);
  ops.backward_weight.push_back(OwnOperation(OperationKind::kGelu, forward));  // again
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
  const bool gated = s.kind != FeedForwardKind::kGelu;
  CHECK(gated || s.biases) << s.name << ": a GELU without biases";
  const int runs = gated ? 2 : 1;  // gates, then values
  layer.parameters = NormParameters(s.norm, s.name, s.hidden);
  const auto add = [&](ParameterSpec p) { layer.parameters.push_back(std::move(p)); };
  add({s.name + "/w1", {s.hidden, runs * s.inner}, InitKind::kNormal, s.stddev, "", 1, runs});
  if (s.biases) add({s.name + "/b1", {runs * s.inner}, InitKind::kZeros, 0, "", 0, runs});
  add({s.name + "/w2", {s.inner, s.hidden}, InitKind::kNormal, s.projection_stddev, "", 0});
  if (s.biases) add({s.name + "/b2", {s.hidden}, InitKind::kZeros, 0, ""});
  layer.attributes = {{"inner", static_cast<double>(s.inner)},
                      {"dropout", s.dropout},
                      {"feed_forward", static_cast<double>(s.kind)}};
  if (!s.residual) layer.attributes[kNoResidual] = 1;
  if (s.exact_gelu) layer.attributes["exact_gelu"] = 1;
  const MlpDimensions sizes{s.hidden, NormStatistics(s.norm), gated, s.dropout > 0, s.residual};
  const auto rows = [t = s.tokens](int64_t samples, TokenSlice slice, TensorParallel split) {
    return SplitRows(samples * slice.CountOf(t), split);
  };
  layer.split.operations = [rows, sizes, f = s.inner](int64_t samples, TokenSlice slice,
                                                      TensorParallel split) {
    return MlpOperations(rows(samples, slice, split), sizes, f / split.degree);
  };
  layer.split.dimensions = {{"inner columns", s.inner, false, "inner"}, {"tokens", s.tokens, true}};
  layer.split.context = ContextUse::kRows;
  SetCosts(&layer, [rows, sizes, f = s.inner](NumberWidth width, LayerSpec* l) {
    l->split.costs = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      return MlpCosts(rows(samples, slice, split), sizes, f / split.degree, width);
    };
    l->split.collectives = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      return BranchCollectives(split, width(rows(samples, slice, split).all * sizes.c));
    };
    SetWholeCosts(l);
  });
  return layer;
}

}  // namespace pipelab
