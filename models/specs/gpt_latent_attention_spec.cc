#include "models/specs/gpt_latent_attention_spec.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "models/graph/cost_math.h"
#include "models/specs/context_attention_spec.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/own_operations.h"

namespace pipelab {
namespace {

// Samples of T tokens of C; heads of one device.
struct LatentDimensions {
  int64_t samples, tokens, c, heads, key_tile;
  LatentHeads latent;
  bool dropout;
  int64_t statistics;  // what the norm keeps of a row
  TensorParallel split;
  NumberWidth width;

  SplitRows Rows() const { return SplitRows(samples * tokens, split); }
  // Numbers of all heads of a row: queries; keys and values; what the up product gives; values.
  int64_t q() const { return heads * latent.head_size(); }
  int64_t kv() const { return heads * (latent.head_size() + latent.value_size); }
  int64_t up() const { return heads * (latent.nope_size + latent.value_size); }
  int64_t v() const { return heads * latent.value_size; }
  // What the product into q takes.
  bool narrow() const { return latent.query_rank > 0; }
  int64_t q_in() const { return narrow() ? latent.query_rank : c; }
  // q k^T, and its like; p v, and its like.
  Flops KeyFlops() const { return Context().PairFlops(q()); }
  Flops ValueFlops() const { return Context().PairFlops(v()); }
  ContextAttention Context() const {
    return {samples,      tokens,   heads,          q(),   kv(), v(), /*causal=*/true,
            /*window=*/0, key_tile, /*apart=*/true, split, width};
  }
};

// What is held, allocation by allocation, and the most of it.
class Held {
 public:
  void Take(Bytes bytes) {
    now_ += bytes;
    most_ = std::max(most_, now_);
  }
  void Free(Bytes bytes) { now_ -= bytes; }
  // A tensor in the place of another.
  void Turn(Bytes from, Bytes to) {
    Take(to);
    Free(from);
  }
  Bytes now() const { return now_; }
  Bytes most() const { return most_; }

 private:
  Bytes now_, most_;
};

// Bytes of rows of n numbers, of all tokens and of the device's own.
struct RowBytes {
  SplitRows rows;
  NumberWidth width;

  Bytes All(int64_t n) const { return width(rows.all * n); }
  Bytes Own(int64_t n) const { return width(rows.own * n); }
  // Where the group splits rows a gather and a scattered sum allocate; else they do not.
  void Gather(int64_t n, Held* held) const {
    if (rows.scattered()) held->Turn(Own(n), All(n));
  }
  void Scatter(int64_t n, Held* held) const {
    if (rows.scattered()) held->Turn(All(n), Own(n));
  }
};

// The allocations of gpt_latent_attention.cc, in their order.
void HoldForward(const LatentDimensions& s, const RowBytes& b, Held* h) {
  const LatentHeads& l = s.latent;
  const Bytes row = FloatBytes(b.rows.own);
  h->Take(row * s.statistics);
  h->Take(b.Own(s.c));  // the norm's output
  if (s.narrow()) h->Take(b.Own(l.query_rank));
  h->Take(b.Own(l.rank));
  h->Take(b.Own(l.rope_size));
  if (s.narrow()) {
    h->Free(b.Own(s.c));
    h->Take(row + b.Own(l.query_rank));
  }
  b.Gather(s.q_in(), h);
  h->Turn(b.All(s.q_in()), b.All(s.q()));
  h->Take(row + b.Own(l.rank));
  b.Gather(l.rank, h);
  h->Turn(b.All(l.rank), b.All(s.up()));
  b.Gather(l.rope_size, h);
  h->Turn(b.All(s.up()) + b.All(l.rope_size), b.All(s.kv()));
  const ContextMemory core = s.Context().Memory();
  h->Take(core.gathers);
  h->Free(core.gathers);
  h->Take(b.All(s.v()) + FloatBytes(b.rows.all * s.heads));
  // Round a ring the own keys, which stay, are those of the first step.
  const Bytes kernel = core.forward - (s.Context().ring() ? b.All(s.kv()) : Bytes(0));
  h->Take(kernel);
  h->Free(kernel);
  h->Take(core.kept);
  h->Take(b.All(s.c));
  b.Scatter(s.c, h);
}

void HoldInputGradient(const LatentDimensions& s, const RowBytes& b, Held* h) {
  const LatentHeads& l = s.latent;
  if (s.dropout) h->Take(b.Own(s.c));  // else the branch's gradient is dy
  if (b.rows.scattered()) h->Turn(s.dropout ? b.Own(s.c) : Bytes(0), b.All(s.c));
  // The gradient of keys and values takes their place; gathered ones and the ring's are in the
  // kernel's memory, which then has the own ones too.
  const ContextAttention context = s.Context();
  const ContextMemory core = context.Memory();
  const bool with_keys = context.parts() && !context.by_heads();
  const Bytes kernel = with_keys ? core.backward - b.All(s.kv()) : core.backward + b.All(s.kv());
  h->Take(b.All(s.v()));
  h->Take(b.All(s.q()) + kernel);
  h->Free(kernel + b.All(s.v()) + FloatBytes(b.rows.all * s.heads) + b.All(s.q()) + core.kept);
  h->Take(b.All(s.q_in()));
  b.Scatter(s.q_in(), h);
  h->Take(b.All(l.rope_size));
  h->Turn(b.All(s.kv()), b.All(s.up()));
  b.Scatter(l.rope_size, h);
  h->Take(b.All(l.rank));
  b.Scatter(l.rank, h);
  h->Take(FloatBytes(l.query_rank + l.rank));  // the gammas' gradients
  if (s.narrow()) h->Turn(b.Own(l.query_rank), b.Own(l.query_rank));
  h->Turn(b.Own(l.rank), b.Own(l.rank));
  if (s.narrow()) h->Take(b.Own(s.c));  // the norm's output's gradient, and what is added to it
  h->Take(b.Own(s.c));
  h->Free(b.Own(s.c));
  h->Turn(Bytes(0), b.Own(s.c));  // dx
  // dy goes, unless it is the branch's gradient, which the weight part takes.
  if (s.dropout || b.rows.scattered()) h->Free(b.Own(s.c));
}

void HoldWeightGradient(const LatentDimensions& s, const RowBytes& b, Held* h) {
  h->Free(b.All(s.v()) + b.All(s.c));
  h->Free(b.Own(s.c));
  h->Take(b.Own(s.c));  // the norm's output
  if (s.narrow()) {
    h->Free(b.Own(s.c));
    h->Take(b.Own(s.q_in()));
  }
  b.Gather(s.q_in(), h);
  h->Free(b.All(s.q_in()));
  h->Take(b.Own(s.latent.rank));
  b.Gather(s.latent.rank, h);
}

LayerCosts LatentCosts(const LatentDimensions& s) {
  const LatentHeads& l = s.latent;
  const RowBytes b{s.Rows(), s.width};
  const int64_t m = b.rows.all, own = b.rows.own;
  LayerCosts costs;
  const Flops linear = MatmulFlops(own, s.c, l.query_rank + l.rank + l.rope_size) +
                       MatmulFlops(m, s.q(), s.q_in()) + MatmulFlops(m, s.up(), l.rank) +
                       MatmulFlops(m, s.c, s.v());
  costs.forward = linear + s.KeyFlops() + s.ValueFlops();
  costs.backward_input = linear + 3.0 * s.KeyFlops() + 2.0 * s.ValueFlops();
  costs.backward_weight = linear;
  costs.output = b.Own(s.c);
  Held forward, input, weight;
  HoldForward(s, b, &forward);
  HoldInputGradient(s, b, &input);
  HoldWeightGradient(s, b, &weight);
  costs.forward_peak = forward.most();
  costs.kept = forward.now() - costs.output;
  costs.backward_input_peak = input.most();
  costs.kept_for_weight = costs.kept + input.now();
  costs.backward_weight_peak = weight.most();
  costs.backward_peak = std::max(input.most(), input.now() + weight.most());
  return costs;
}

LayerOperations LatentOperations(const LatentDimensions& s) {
  const LatentHeads& l = s.latent;
  const SplitRows rows = s.Rows();
  const int64_t m = rows.all, own = rows.own;
  LayerOperations ops;
  AddMemory(OperationKind::kLayerNorm, 2 * own * s.c, 4 * own * s.c, &ops);
  const auto add_latent = [&](int64_t rank) {
    AddMatmul(own, rank, s.c, &ops);
    AddMemory(OperationKind::kLayerNorm, 2 * own * rank, 3 * own * rank, &ops);
    // The gamma's gradient has a pass to itself; the normed row comes again for the next product.
    ops.backward_input.push_back(OwnOperation(OperationKind::kLayerNorm, 2 * own * rank));
    ops.backward_weight.push_back(OwnOperation(OperationKind::kLayerNorm, 2 * own * rank));
  };
  if (s.narrow()) add_latent(l.query_rank);
  add_latent(l.rank);
  AddMatmul(own, l.rope_size, s.c, &ops);
  AddMatmul(m, s.q(), s.q_in(), &ops);
  AddMatmul(m, s.up(), l.rank, &ops);
  const int64_t turned = 2 * m * (s.heads + 1) * l.rope_size;  // in place
  AddElementwise(turned, turned, &ops);
  // The key that all heads share to each of them, and a head's numbers beside it.
  const int64_t joined = m * (s.up() + l.rope_size + s.kv());
  AddElementwise(joined, joined, &ops);
  const ContextAttention context = s.Context();
  const int64_t keys = context.parts() ? s.samples * context.KeysRead() : m;
  const int64_t moved = m * (s.q() + s.v()) + keys * s.kv();
  const int64_t parts = context.head_parts();
  const AttentionSize size = {m / s.samples * parts, s.samples * s.heads / parts,
                              s.latent.head_size()};
  ops.forward.push_back(AttentionOperation(s.KeyFlops() + s.ValueFlops(), moved, size));
  ops.backward_input.push_back(
      AttentionGradientOperation(3.0 * s.KeyFlops() + 2.0 * s.ValueFlops(), 2 * moved, size));
  if (context.parts()) context.AddOperations(&ops);
  AddMatmul(m, s.c, s.v(), &ops);
  AddElementwise(3 * own * s.c, 0, &ops);
  // The parts of the norm's output's gradient are added.
  ops.backward_input.push_back(OwnOperation(OperationKind::kElementwise, 6 * own * s.c));
  AddOwnNormAndResidual(own * s.c, &ops);
  return ops;
}

TensorCollectives Collectives(const LatentDimensions& s) {
  const RowBytes b{s.Rows(), s.width};
  const LatentHeads& l = s.latent;
  TensorCollectives all;
  for (const int64_t n : {s.q_in(), l.rank, l.rope_size}) {
    AddGather(s.split, b.All(n), &all.forward);
  }
  AddSum(s.split, b.All(s.c), &all.forward);
  AddGather(s.split, b.All(s.c), &all.backward_input);
  for (const int64_t n : {s.q_in(), l.rope_size, l.rank}) {
    AddSum(s.split, b.All(n), &all.backward_input);
  }
  for (const int64_t n : {s.q_in(), l.rank}) AddGather(s.split, b.All(n), &all.backward_weight);
  return all;
}

std::vector<ParameterSpec> LatentParameters(const GptLatentAttentionSizes& s) {
  const LatentHeads& l = s.latent;
  std::vector<ParameterSpec> all = NormParameters(s.norm, s.name, s.hidden);
  const auto add = [&](const char* name, std::vector<int64_t> shape, int split, double stddev) {
    all.push_back({s.name + name, std::move(shape), InitKind::kNormal, stddev, "", split});
  };
  const auto add_gamma = [&](const char* name, int64_t rank) {
    all.push_back({s.name + name, {rank}, InitKind::kOnes, 0, ""});
  };
  if (l.query_rank > 0) {
    add("/wqa", {s.hidden, l.query_rank}, -1, s.stddev);
    add_gamma("/qgamma", l.query_rank);
  }
  add("/wqb", {l.query_rank > 0 ? l.query_rank : s.hidden, s.heads * l.head_size()}, 1, s.stddev);
  add("/wkva", {s.hidden, l.rank}, -1, s.stddev);
  add("/wkr", {s.hidden, l.rope_size}, -1, s.stddev);
  add_gamma("/kgamma", l.rank);
  add("/wkvb", {l.rank, s.heads * (l.nope_size + l.value_size)}, 1, s.stddev);
  add("/wo", {s.heads * l.value_size, s.hidden}, 0, s.projection_stddev);
  return all;
}

}  // namespace

LayerSpec GptLatentAttentionSpec(const GptLatentAttentionSizes& s) {
  const LatentHeads& l = s.latent;
  CHECK(l.rank > 0 && l.nope_size > 0 && l.rope_size > 0 && l.value_size > 0) << s.name;
  CHECK_EQ(l.rope_size % 2, 0) << s.name << ": numbers that turn";
  LayerSpec layer;
  layer.name = s.name;
  layer.kind = kGptLatentAttention;
  layer.inputs = {s.input};
  layer.input_shapes = {{s.tokens, s.hidden}};
  layer.output_shape = {s.tokens, s.hidden};
  layer.parameters = LatentParameters(s);
  layer.attributes = {{"heads", static_cast<double>(s.heads)},
                      {"query_rank", static_cast<double>(l.query_rank)},
                      {"rank", static_cast<double>(l.rank)},
                      {"nope_size", static_cast<double>(l.nope_size)},
                      {"rope_size", static_cast<double>(l.rope_size)},
                      {"value_size", static_cast<double>(l.value_size)},
                      {"key_tile", static_cast<double>(s.key_tile)},
                      {"dropout", s.dropout},
                      {"rotary_base", s.rotary_base}};
  LatentDimensions one;
  one.samples = 1;
  one.tokens = s.tokens;
  one.c = s.hidden;
  one.heads = s.heads;
  one.key_tile = s.key_tile;
  one.latent = l;
  one.dropout = s.dropout > 0;
  one.statistics = NormStatistics(s.norm);
  const auto part = [one](int64_t samples, TensorParallel split,
                          NumberWidth bytes = NumberWidth()) {
    LatentDimensions sizes = one;
    sizes.samples = samples;
    sizes.heads /= split.degree;
    sizes.split = split;
    sizes.width = bytes;
    return sizes;
  };
  layer.split.operations = [part](int64_t samples, TokenSlice, TensorParallel split) {
    return LatentOperations(part(samples, split));
  };
  layer.split.dimensions = {{"heads", s.heads, false, "heads"}, {"tokens", s.tokens, true}};
  layer.split.context = ContextUse::kCausalKeys;
  SetCosts(&layer, [part](NumberWidth bytes, LayerSpec* spec) {
    spec->split.costs = [part, bytes](int64_t samples, TokenSlice, TensorParallel split) {
      return LatentCosts(part(samples, split, bytes));
    };
    spec->split.collectives = [part, bytes](int64_t samples, TokenSlice, TensorParallel split) {
      return Collectives(part(samples, split, bytes));
    };
    spec->split.context_collectives = [part, bytes](int64_t samples, TokenSlice,
                                                    TensorParallel split) {
      return part(samples, split, bytes).Context().Collectives();
    };
    SetWholeCosts(spec);
    spec->slice_costs = nullptr;
  });
  return layer;
}

LatentHeads LatentHeadsOf(const LayerSpec& layer) {
  const auto number = [&layer](const char* name) { return WholeAttribute(layer, name); };
  return {number("query_rank"), number("rank"), number("nope_size"), number("rope_size"),
          number("value_size")};
}

}  // namespace pipelab
