#include "models/specs/gpt_experts_spec.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "glog/logging.h"
#include "models/graph/cost_math.h"
#include "models/specs/own_operations.h"

namespace pipelab {
namespace {

struct Sizes {
  int64_t c, experts, groups, choices;
  int64_t statistics;  // what the norm keeps of a row
  bool dropout;
};

// Rows of C; F inner columns of each expert, of one device. The order of allocations is in
// gpt_experts.cc; split rows as in gpt_mlp_spec.cc.
LayerCosts ExpertCosts(const SplitRows& rows, const Sizes& s, int64_t f, NumberWidth width) {
  const int64_t m = rows.all, c = s.c, r = m * s.choices;
  const Bytes none, weights = FloatBytes(r);
  // The norm's statistics, the logits, and the routing: weights, experts and places of choices, and
  // where experts begin.
  const Bytes small = FloatBytes(s.statistics * rows.own) + width(m * s.experts) + weights * 3 +
                      FloatBytes(s.groups + 1);
  const Bytes own = width(rows.own * c), mc = width(m * c), rc = width(r * c), rf = width(r * f),
              rh = rf * 2;
  const Bytes summed = rows.scattered() ? own : none;
  LayerCosts costs;
  costs.forward = MatmulFlops(m, s.experts, c) + 3 * MatmulFlops(r, f, c);
  costs.backward_input = costs.forward;
  costs.backward_weight = costs.forward;
  costs.output = own;
  costs.kept = small + rh;
  // h and its gradient; the logits' gradient is in their place. The branch's gradient and that of
  // the norm's output.
  costs.kept_for_weight = small + rh * 2 + mc + own;
  // The norm's output beside the experts' rows of it; at the second products h, what goes in and
  // what comes out; that and its sums over choices; those over the group.
  costs.forward_peak = small + std::max({mc + rc, rh + rc + std::max(rf, mc), rh + mc + summed});
  // The branch's gradient where it is not dy itself. With the weights' gradients: the experts' rows
  // of it and the gradient of act(g) u; that and h's; h's and the norm's, in rows and in all. Then
  // the norm's twice, for the part by way of the router or x's, or its sums.
  const Bytes branch = rows.scattered() || s.dropout ? mc : none;
  costs.backward_input_peak =
      branch + std::max({weights + rf + std::max(rc, rh), weights + rh + rc + mc, rh + mc * 2});
  // From what is kept for it: act(g) u, which takes the place of h, beside the rows of the branch's
  // gradient; without these, h, and the norm's gradient: the rows of the norm's output.
  const auto at = [&](Bytes more, Bytes less) { return more > less ? more - less : none; };
  costs.backward_weight_peak = std::max({rf, at(rf + rc, rh), at(rc, rh + own)});
  costs.backward_peak =
      std::max(costs.backward_input_peak, rh + mc + own + costs.backward_weight_peak);
  return costs;
}

// A product of R rows in as many parts as experts have some; in the weight gradient each part is a
// product of its own size too.
void AddExpertProducts(int64_t r, int64_t n, int64_t k, int64_t experts, LayerOperations* ops) {
  const int64_t hit = std::min(r, experts), of_each = (r + hit - 1) / hit;
  const auto product = [&](int64_t m, int64_t columns, int64_t inner) {
    Operation operation = MatmulOperation(m, columns, inner);
    operation.flops = MatmulFlops(r, n, k);
    operation.numbers = r * k + hit * k * n + r * n;
    return operation;
  };
  ops->forward.push_back(product(of_each, n, k));
  ops->backward_input.push_back(product(of_each, k, n));
  ops->backward_weight.push_back(product(k, n, of_each));
}

// Norm, router, rows to experts, product, gate with weights, product, sums over choices, residual.
LayerOperations ExpertOperations(const SplitRows& rows, const Sizes& s, int64_t f) {
  const int64_t m = rows.all, own = rows.own, c = s.c, r = m * s.choices;
  LayerOperations ops;
  AddMemory(OperationKind::kLayerNorm, 2 * own * c, 4 * own * c, &ops);
  AddMatmul(m, s.experts, c, &ops);
  AddMemory(OperationKind::kLoss, m * s.experts + 2 * r, 2 * m * s.experts + 2 * r, &ops);
  AddElementwise(2 * r * c, r * c + m * c, &ops);
  AddExpertProducts(r, 2 * f, c, s.groups, &ops);
  AddMemory(OperationKind::kGelu, 3 * r * f, 5 * r * f, &ops);
  AddExpertProducts(r, c, f, s.groups, &ops);
  AddElementwise(r * c + m * c, 2 * r * c, &ops);
  AddElementwise(3 * own * c, 0, &ops);
  AddOwnNormAndResidual(own * c, &ops);
  // Weights in a pass of their own; the weight part computes again what goes into the products.
  ops.forward.push_back(OwnOperation(OperationKind::kElementwise, 2 * r * f));
  ops.backward_input.push_back(OwnOperation(OperationKind::kGelu, 6 * r * f));
  ops.backward_weight.push_back(OwnOperation(OperationKind::kGelu, 5 * r * f));
  ops.backward_weight.push_back(OwnOperation(OperationKind::kElementwise, 4 * r * c));
  return ops;
}

int64_t CapacityOf(const GptExpertsSizes& s) {
  return static_cast<int64_t>(std::ceil(s.choice.capacity_factor * static_cast<double>(s.tokens) *
                                        static_cast<double>(s.choice.chosen) /
                                        static_cast<double>(s.choice.experts)));
}

std::map<std::string, double> AttributesOf(const GptExpertsSizes& s) {
  return {{"inner", static_cast<double>(s.inner)},
          {"experts", static_cast<double>(s.choice.experts)},
          {"chosen", static_cast<double>(s.choice.chosen)},
          {"shared", static_cast<double>(s.choice.shared)},
          {"sigmoid", s.choice.sigmoid ? 1 : 0},
          {"normalized", s.choice.normalized ? 1 : 0},
          {"scale", s.choice.scale},
          {"nodes", static_cast<double>(s.choice.nodes)},
          {"most_nodes", static_cast<double>(s.choice.most_nodes)},
          {"capacity", static_cast<double>(CapacityOf(s))},
          {"balance", s.choice.balance},
          {"dropout", s.dropout},
          {"feed_forward", static_cast<double>(s.kind)}};
}

}  // namespace

LayerSpec GptExpertsSpec(const GptExpertsSizes& s) {
  CHECK(s.kind != FeedForwardKind::kGelu) << s.name << ": experts have gates";
  CHECK(0 < s.choice.chosen && s.choice.chosen <= s.choice.experts)
      << s.name << ": " << s.choice.chosen << " of " << s.choice.experts;
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kGptExperts;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.tokens, s.hidden}};
  layer.output_shape = {s.tokens, s.hidden};
  const int64_t groups = s.choice.experts + s.choice.shared;
  layer.parameters = NormParameters(s.norm, s.name, s.hidden);
  const auto add = [&](ParameterSpec p) { layer.parameters.push_back(std::move(p)); };
  add({s.name + "/router", {s.hidden, s.choice.experts}, InitKind::kNormal, s.stddev, ""});
  add({s.name + "/w1", {groups, s.hidden, 2 * s.inner}, InitKind::kNormal, s.stddev, "", 2, 2});
  add({s.name + "/w2", {groups, s.inner, s.hidden}, InitKind::kNormal, s.projection_stddev, "", 1});
  layer.attributes = AttributesOf(s);
  const Sizes sizes{s.hidden,
                    s.choice.experts,
                    groups,
                    s.choice.chosen + s.choice.shared,
                    NormStatistics(s.norm),
                    s.dropout > 0};
  const auto rows = [t = s.tokens](int64_t samples, TokenSlice slice, TensorParallel split) {
    return SplitRows(samples * slice.CountOf(t), split);
  };
  layer.split.operations = [rows, sizes, f = s.inner](int64_t samples, TokenSlice slice,
                                                      TensorParallel split) {
    return ExpertOperations(rows(samples, slice, split), sizes, f / split.degree);
  };
  layer.split.dimensions = {{"inner columns", s.inner, false, "inner"}, {"tokens", s.tokens, true}};
  const bool whole_samples = s.choice.capacity_factor > 0 || s.choice.balance > 0;
  SetCosts(&layer, [=, f = s.inner](NumberWidth width, LayerSpec* l) {
    l->split.costs = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      return ExpertCosts(rows(samples, slice, split), sizes, f / split.degree, width);
    };
    l->split.collectives = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      const int64_t m = rows(samples, slice, split).all;
      TensorCollectives all = BranchCollectives(split, width(m * sizes.c));
      if (split.degree > 1) {  // of the weights' gradients, before those of the norm's output
        all.backward_input.insert(all.backward_input.end() - 1,
                                  {Collective::kAllReduce, FloatBytes(m * sizes.choices)});
      }
      return all;
    };
    SetWholeCosts(l);
    if (whole_samples) l->slice_costs = nullptr;
  });
  return layer;
}

}  // namespace pipelab
