#include "models/specs/gpt_experts_spec.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "glog/logging.h"
#include "models/graph/cost_math.h"
#include "models/specs/expert_products.h"
#include "models/specs/own_operations.h"

namespace pipelab {
namespace {

struct Sizes {
  int64_t c, inner, experts, shared, chosen;
  int64_t statistics;  // what the norm keeps of a row
  bool dropout;
};

// What one device does: routed and shared experts, which all tokens take. Split rows as in
// gpt_mlp_spec.cc; with whole experts a device of a group routes its own.
struct Work {
  Work(const SplitRows& rows, const Sizes& s, TensorParallel split)
      : all(rows.all),
        own(rows.own),
        m(split.whole_experts ? rows.own : rows.all),
        routed(m * s.chosen),
        shared(all * s.shared),
        routed_f(s.inner / split.expert_degree()),
        shared_f(s.inner / split.degree),
        experts(s.experts / split.experts),
        away(split.experts > 1) {}

  int64_t all, own;            // rows of a group and of the device
  int64_t m;                   // that it routes
  int64_t routed, shared;      // rows of experts: as many come as go, of an even load
  int64_t routed_f, shared_f;  // inner columns
  int64_t experts;             // routed ones that the device has
  bool away;                   // others have the rest
  int64_t rows() const { return routed + shared; }
  int64_t inner() const { return routed * routed_f + shared * shared_f; }  // numbers
};

// The order of allocations is in gpt_experts.cc.
LayerCosts ExpertCosts(const Work& w, const Sizes& s, NumberWidth width) {
  const int64_t m = w.m, c = s.c, r = w.rows();
  const Bytes none, weights = FloatBytes(r);
  // The norm's statistics, the logits, and the routing: weights, experts and places of choices, and
  // where experts begin.
  const Bytes small = FloatBytes(s.statistics * w.own) + width(m * s.experts) + weights * 3 +
                      FloatBytes(s.experts + s.shared + 1);
  const Bytes own = width(w.own * c), mc = width(m * c), rc = width(r * c), rf = width(w.inner()),
              rh = rf * 2;
  const Bytes summed = w.all != w.own ? own : none;
  LayerCosts costs;
  costs.forward = MatmulFlops(m, s.experts, c) + 3 * MatmulFlops(w.routed, w.routed_f, c) +
                  3 * MatmulFlops(w.shared, w.shared_f, c);
  costs.backward_input = costs.forward;
  costs.backward_weight = costs.forward;
  costs.output = own;
  // The branch's gradient where it is not dy itself.
  const Bytes branch = w.all != w.own || s.dropout ? mc : none;
  const auto at = [&](Bytes more, Bytes less) { return more > less ? more - less : none; };
  if (w.away) {
    // Rows that came stay, as gradients of rows do, so that the weight part sends nothing. An
    // exchange has what goes and what comes.
    costs.kept = small + rh + rc;
    costs.kept_for_weight = small + (rh + rc) * 2 + own;
    costs.forward_peak = small + std::max({mc + rc, rc * 2, rc * 2 + rh + rf, rc * 3 + rh,
                                           rc * 2 + rh + mc, rc + rh + mc + summed});
    costs.backward_input_peak =
        branch + weights +
        std::max({rc * 2, rc + rf + rh, rc * 3 + rh, rc * 2 + rh + mc, rc + rh + mc * 2});
    costs.backward_weight_peak = std::max(rf, at(mc, rh + rc));
    costs.backward_peak =
        std::max(costs.backward_input_peak, rh + rc + own + costs.backward_weight_peak);
    return costs;
  }
  costs.kept = small + rh;
  // h and its gradient; the logits' gradient is in their place. The branch's gradient and that of
  // the norm's output.
  costs.kept_for_weight = small + rh * 2 + mc + own;
  // The norm's output beside the experts' rows of it; at the second products h, what goes in and
  // what comes out; that and its sums over choices; those over the group.
  costs.forward_peak = small + std::max({mc + rc, rh + rc + std::max(rf, mc), rh + mc + summed});
  // With the weights' gradients: the experts' rows of the branch's gradient and the gradient of
  // act(g) u; that and h's; h's and the norm's, in rows and in all. Then the norm's twice, for the
  // part by way of the router or x's, or its sums.
  costs.backward_input_peak =
      branch + std::max({weights + rf + std::max(rc, rh), weights + rh + rc + mc, rh + mc * 2});
  // From what is kept for it: act(g) u, which takes the place of h, beside the rows of the branch's
  // gradient; without these, h, and the norm's gradient: the rows of the norm's output.
  costs.backward_weight_peak = std::max({rf, at(rf + rc, rh), at(rc, rh + own)});
  costs.backward_peak =
      std::max(costs.backward_input_peak, rh + mc + own + costs.backward_weight_peak);
  return costs;
}

// Norm, router, rows to experts, product, gate with weights, product, sums over choices, residual.
LayerOperations ExpertOperations(const Work& w, const Sizes& s) {
  const int64_t m = w.m, own = w.own, c = s.c, r = w.rows(), inner = w.inner();
  LayerOperations ops;
  // Into `wide` times the inner columns, or out of them.
  const auto products = [&](int64_t wide) {
    const auto add = [&](int64_t rows, int64_t f, int64_t experts) {
      const int64_t n = wide > 0 ? wide * f : c, k = wide > 0 ? c : f;
      AddExpertProducts(rows, n, k, experts, /*written=*/1, &ops);
    };
    add(w.routed, w.routed_f, w.experts);
    add(w.shared, w.shared_f, s.shared);
  };
  AddMemory(OperationKind::kLayerNorm, 2 * own * c, 4 * own * c, &ops);
  AddMatmul(m, s.experts, c, &ops);
  AddMemory(OperationKind::kLoss, m * s.experts + 2 * r, 2 * m * s.experts + 2 * r, &ops);
  AddElementwise(2 * r * c, r * c + m * c, &ops);
  // Rows come device by device, and are put in the order of experts; and back.
  if (w.away) AddElementwise(2 * w.routed * c, 2 * w.routed * c, &ops);
  products(2);
  AddMemory(OperationKind::kGelu, 3 * inner, 5 * inner, &ops);
  products(0);
  if (w.away) AddElementwise(2 * w.routed * c, 2 * w.routed * c, &ops);
  AddElementwise(r * c + m * c, 2 * r * c, &ops);
  AddElementwise(3 * own * c, 0, &ops);
  AddOwnNormAndResidual(own * c, &ops);
  // Weights in a pass of their own; the weight part computes again what goes into the products.
  ops.forward.push_back(OwnOperation(OperationKind::kElementwise, 2 * inner));
  ops.backward_input.push_back(OwnOperation(OperationKind::kGelu, 6 * inner));
  ops.backward_weight.push_back(OwnOperation(OperationKind::kGelu, 5 * inner));
  ops.backward_weight.push_back(OwnOperation(OperationKind::kElementwise, 4 * r * c));
  return ops;
}

// Of bytes with the width of the activations.
TensorCollectives ExpertCollectives(const Work& w, const Sizes& s, TensorParallel split,
                                    NumberWidth width) {
  TensorCollectives all;
  // Whole experts need nothing of the group but for the shared ones.
  if (!split.whole_experts || s.shared > 0) all = BranchCollectives(split, width(w.all * s.c));
  if (split.degree > 1 && !split.whole_experts) {  // of the weights' gradients, before those of
    all.backward_input.insert(all.backward_input.end() - 1,  // the norm's output
                              {Collective::kAllReduce, FloatBytes(w.rows())});
  }
  if (w.away) AddExchanges(width(w.routed * s.c), &all);
  return all;
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
  for (auto p = layer.parameters.end() - 2; p != layer.parameters.end(); ++p) {
    p->experts = s.choice.experts;
  }
  layer.attributes = AttributesOf(s);
  const Sizes sizes{s.hidden,        s.inner,         s.choice.experts,
                    s.choice.shared, s.choice.chosen, NormStatistics(s.norm),
                    s.dropout > 0};
  const auto work = [t = s.tokens, sizes](int64_t samples, TokenSlice slice, TensorParallel split) {
    return Work(SplitRows(samples * slice.CountOf(t), split), sizes, split);
  };
  layer.split.operations = [work, sizes](int64_t samples, TokenSlice slice, TensorParallel split) {
    return ExpertOperations(work(samples, slice, split), sizes);
  };
  const bool whole_samples = s.choice.capacity_factor > 0 || s.choice.balance > 0;
  layer.split.context = whole_samples ? ContextUse::kNone : ContextUse::kRows;
  layer.split.dimensions = {{"inner columns", s.inner, false, "inner"}, {"tokens", s.tokens, true}};
  SetCosts(&layer, [=](NumberWidth width, LayerSpec* l) {
    l->split.costs = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      return ExpertCosts(work(samples, slice, split), sizes, width);
    };
    l->split.collectives = [=](int64_t samples, TokenSlice slice, TensorParallel split) {
      return ExpertCollectives(work(samples, slice, split), sizes, split, width);
    };
    SetWholeCosts(l);
    if (whole_samples) l->slice_costs = nullptr;
  });
  return layer;
}

}  // namespace pipelab
