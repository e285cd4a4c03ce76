#include "models/specs/gpt_experts_spec.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "models/graph/cost_math.h"
#include "models/specs/expert_costs.h"
#include "models/specs/expert_products.h"
#include "models/specs/own_operations.h"

namespace pipelab {
namespace {

// Norm, router, rows to experts, product, gate with weights, product, sums over choices, residual.
LayerOperations ExpertOperations(const ExpertWork& w, const ExpertSizes& s) {
  const int64_t m = w.m, own = w.own, c = s.c, r = w.routed;
  const int64_t inner = r * w.routed_f, shared = w.all * w.shared_f;  // numbers
  LayerOperations ops;
  AddMemory(OperationKind::kLayerNorm, 2 * own * c, 4 * own * c, &ops);
  AddMatmul(m, s.experts, c, &ops);
  AddMemory(OperationKind::kLoss, m * s.experts + 2 * r, 2 * m * s.experts + 2 * r, &ops);
  AddElementwise(2 * r * c, r * c + m * c, &ops);
  // Rows come device by device, and are put in the order of experts; and back.
  if (w.away) AddElementwise(2 * r * c, 2 * r * c, &ops);
  AddExpertProducts(r, 2 * w.routed_f, c, w.experts, /*written=*/1, &ops);
  AddMemory(OperationKind::kGelu, 3 * (inner + shared), 5 * (inner + shared), &ops);
  AddExpertProducts(r, c, w.routed_f, w.experts, /*written=*/1, &ops);
  if (w.away) AddElementwise(2 * r * c, 2 * r * c, &ops);
  if (s.shared > 0) {
    AddMatmul(w.all, 2 * w.shared_f, c, &ops);
    AddMatmul(w.all, c, w.shared_f, &ops);
    AddElementwise(3 * m * c, 3 * m * c, &ops);
  }
  AddElementwise(r * c + m * c, 2 * r * c, &ops);
  AddElementwise(3 * own * c, 0, &ops);
  AddOwnNormAndResidual(own * c, &ops);
  // Weights in a pass of their own; the weight part computes again what goes into the products.
  ops.forward.push_back(OwnOperation(OperationKind::kElementwise, 2 * inner));
  ops.backward_input.push_back(OwnOperation(OperationKind::kGelu, 6 * inner));
  ops.backward_weight.push_back(OwnOperation(OperationKind::kGelu, 5 * inner + 3 * shared));
  ops.backward_weight.push_back(OwnOperation(OperationKind::kElementwise, 4 * r * c));
  AddBiasGradients(s.biases, {m * s.experts, 2 * inner, r * c}, &ops);
  return ops;
}

// Collectives of bytes with the width of the activations.
TensorCollectives ExpertCollectives(const ExpertWork& w, const ExpertSizes& s, TensorParallel split,
                                    NumberWidth width) {
  TensorCollectives all;
  // Whole experts need nothing of the group but for the shared ones.
  if (!split.whole_experts || s.shared > 0) all = BranchCollectives(split, width(w.all * s.c));
  if (split.degree > 1 && !split.whole_experts) {  // of the weights' gradients, before those of
    all.backward_input.insert(all.backward_input.end() - 1,  // the norm's output
                              {Collective::kAllReduce, FloatBytes(w.routed)});
  }
  if (!w.away) return all;
  AddExchanges(width(w.routed * s.c), &all);
  // How many rows come, the weights of rows and their gradients.
  const auto exchange = [](int64_t numbers) {
    return TensorCollective{Collective::kAllToAll, FloatBytes(numbers)};
  };
  all.forward.insert(all.forward.end(), {exchange(s.experts), exchange(w.routed)});
  all.backward_input.push_back(exchange(w.routed));
  return all;
}

int64_t CapacityOf(const GptExpertsSizes& s) {
  return static_cast<int64_t>(std::ceil(s.choice.capacity_factor * static_cast<double>(s.tokens) *
                                        static_cast<double>(s.choice.chosen) /
                                        static_cast<double>(s.choice.experts)));
}

ExpertSizes SizesOf(const GptExpertsSizes& s) {
  const ExpertChoice& e = s.choice;
  return {s.hidden,      s.inner, e.experts, e.shared * s.inner, e.chosen, NormStatistics(s.norm),
          s.dropout > 0, s.biases};
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
          {"feed_forward", static_cast<double>(s.kind)},
          {kExpertBiases, s.biases ? 1 : 0}};
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
  const int64_t experts = s.choice.experts, shared = s.choice.shared * s.inner;
  layer.parameters = NormParameters(s.norm, s.name, s.hidden);
  const auto add = [&](ParameterSpec p) { layer.parameters.push_back(std::move(p)); };
  add({s.name + "/router", {s.hidden, experts}, InitKind::kNormal, s.stddev, ""});
  const auto projection = [&](const char* name, std::vector<int64_t> shape, int split) {
    add({s.name + name, std::move(shape), InitKind::kNormal, s.projection_stddev, "", split});
  };
  add({s.name + "/w1", {experts, s.hidden, 2 * s.inner}, InitKind::kNormal, s.stddev, "", 2, 2});
  projection("/w2", {experts, s.inner, s.hidden}, 1);
  for (auto p = layer.parameters.end() - 2; p != layer.parameters.end(); ++p) p->experts = experts;
  if (shared > 0) {
    add({s.name + "/w1_shared", {s.hidden, 2 * shared}, InitKind::kNormal, s.stddev, "", 1, 2});
    projection("/w2_shared", {shared, s.hidden}, 0);
  }
  if (s.biases) {
    add({s.name + "/router_bias", {experts}, InitKind::kZeros, 0, ""});
    add({s.name + "/bias1", {experts, 2 * s.inner}, InitKind::kZeros, 0, "", 1, 2});
    add({s.name + "/bias2", {experts, s.hidden}, InitKind::kZeros, 0, ""});
    for (auto p = layer.parameters.end() - 2; p != layer.parameters.end(); ++p) {
      p->experts = experts;
    }
    layer.priced_alone = "experts with biases";
  }
  layer.attributes = AttributesOf(s);
  const ExpertSizes sizes = SizesOf(s);
  const auto work = [t = s.tokens, sizes](int64_t samples, TokenSlice slice, TensorParallel split) {
    return ExpertWork(SplitRows(samples * slice.CountOf(t), split), sizes, split);
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

LayerCosts GptExpertsCosts(const GptExpertsSizes& sizes, int64_t samples, TensorParallel split,
                           int64_t came, NumberWidth width) {
  const ExpertSizes s = SizesOf(sizes);
  ExpertWork work(SplitRows(samples * sizes.tokens, split), s, split);
  work.came = came;
  return ExpertCosts(work, s, width);
}

}  // namespace pipelab
