// How the layers of the zoo's Transformers are split over a tensor-parallel group: parts add up to
// the whole, the group sends what Megatron-LM's papers count, and bytes are those of the order in
// which a device would allocate.
#include "models/graph/tensor_parallel.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/graph/attention_workspace.h"
#include "models/layers/unfused_attention_spec.h"
#include "models/zoo/bert.h"
#include "models/zoo/gpt.h"
#include "models/zoo/transformer.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr int64_t kSamples = 3, kTokens = 16, kSourceTokens = 24, kHidden = 32, kHeads = 8,
                  kWords = 40;

ModelGraph Gpt(double dropout, Positions positions = Positions::kLearned) {
  GptConfig c;
  c.layers = 2;
  c.hidden = kHidden;
  c.heads = kHeads;
  c.tokens = kTokens;
  c.vocabulary = kWords;
  c.dropout = dropout;
  c.positions = positions;
  return *BuildGpt(c);
}

ModelGraph EncoderDecoder(double dropout) {
  TransformerConfig c;
  c.layers = 1;
  c.hidden = kHidden;
  c.heads = kHeads;
  c.feed_forward = 80;
  c.source_tokens = kSourceTokens;
  c.target_tokens = kTokens;
  c.vocabulary = kWords;
  c.dropout = dropout;
  return *BuildTransformer(c);
}

std::vector<ModelGraph> Graphs() {
  return {Gpt(0), Gpt(0.1, Positions::kSinusoidal), EncoderDecoder(0), EncoderDecoder(0.1),
          WithUnfusedAttention(Gpt(0.1))};
}

std::vector<TensorParallel> Splits() {
  return {{2, false}, {4, false}, {8, false}, {2, true}, {4, true}, {8, true}};
}

void ExpectSameOperations(const std::vector<Operation>& a, const std::vector<Operation>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].kind, b[i].kind);
    EXPECT_EQ(a[i].flops, b[i].flops);
    EXPECT_EQ(a[i].numbers, b[i].numbers);
    EXPECT_EQ(a[i].m, b[i].m);
    EXPECT_EQ(a[i].n, b[i].n);
    EXPECT_EQ(a[i].k, b[i].k);
  }
}

std::vector<Bytes> AllBytes(const LayerCosts& c) {
  return {c.output,
          c.kept,
          c.kept_for_weight,
          c.forward_peak,
          c.backward_peak,
          c.carried,
          c.backward_input_peak,
          c.backward_weight_peak,
          c.recompute_peak,
          c.kept_when_dropped};
}

// Whether or not a degree of one takes the way of a split layer, everything is the layer's.
TEST(TensorParallel, AGroupOfOneIsTheWholeLayer) {
  for (const ModelGraph& graph : Graphs()) {
    for (const LayerSpec& layer : graph.layers) {
      SCOPED_TRACE(layer.name);
      ASSERT_FALSE(layer.split.empty());
      for (const bool sequence : {false, true}) {
        const TensorParallel one{1, sequence};
        const TensorShare share = ShareOf(layer, kSamples, TokenSlice(), one);
        EXPECT_EQ(AllBytes(share.costs), AllBytes(layer.costs(kSamples)));
        EXPECT_EQ(AllBytes(layer.split.costs(kSamples, TokenSlice(), one)),
                  AllBytes(layer.costs(kSamples)));
        const LayerOperations whole = layer.operations(kSamples, TokenSlice());
        ExpectSameOperations(share.operations.forward, whole.forward);
        const LayerOperations split = layer.split.operations(kSamples, TokenSlice(), one);
        ExpectSameOperations(split.forward, whole.forward);
        ExpectSameOperations(split.backward_input, whole.backward_input);
        ExpectSameOperations(split.backward_weight, whole.backward_weight);
        const TensorCollectives none = layer.split.collectives(kSamples, TokenSlice(), one);
        EXPECT_TRUE(none.forward.empty() && none.backward_input.empty() &&
                    none.backward_weight.empty());
      }
    }
  }
}

double Products(const std::vector<Operation>& operations) {
  double flops = 0;
  for (const Operation& o : operations) flops += o.flops.value();
  return flops;
}

TEST(TensorParallel, ProductsOfAllDevicesAreTheLayers) {
  for (const ModelGraph& graph : Graphs()) {
    for (const LayerSpec& layer : graph.layers) {
      const LayerCosts whole = layer.costs(kSamples);
      for (const TensorParallel& split : Splits()) {
        SCOPED_TRACE(absl::StrCat(layer.name, " T=", split.degree, " sequence=", split.sequence));
        const TensorShare share = ShareOf(layer, kSamples, TokenSlice(), split);
        const double t = static_cast<double>(split.degree);
        EXPECT_DOUBLE_EQ(share.costs.forward.value() * t, whole.forward.value());
        EXPECT_DOUBLE_EQ(share.costs.backward_input.value() * t, whole.backward_input.value());
        EXPECT_DOUBLE_EQ(share.costs.backward_weight.value() * t, whole.backward_weight.value());
        EXPECT_DOUBLE_EQ(Products(share.operations.forward), share.costs.forward.value());
        EXPECT_DOUBLE_EQ(Products(share.operations.backward_input),
                         share.costs.backward_input.value());
        EXPECT_DOUBLE_EQ(Products(share.operations.backward_weight),
                         share.costs.backward_weight.value());
      }
    }
  }
}

// Elements that a device sends in rings.
int64_t Sent(const std::vector<TensorCollective>& collectives, int64_t t) {
  int64_t elements = 0;
  for (const TensorCollective& c : collectives) {
    const int64_t rounds = c.kind == Collective::kAllReduce ? 2 : 1;
    elements += rounds * c.bytes.value() / 4 * (t - 1) / t;
  }
  return elements;
}

// Narayanan et al. 2021: 8 b s h (t - 1) / t elements a Transformer layer and device, forward and
// backward; half of a forward's again for a recompute. Sequence parallelism sends the same, and the
// inputs of the first products once more for their weight gradients (Korthikanti et al. 2022).
TEST(TensorParallel, TrafficOfABlockIsMegatrons) {
  const ModelGraph graph = Gpt(0.1);
  const int64_t bsh = kSamples * kTokens * kHidden;
  for (const TensorParallel& split : Splits()) {
    const int64_t t = split.degree;
    int64_t forward = 0, input = 0, weight = 0;
    size_t collectives = 0;
    for (int layer : {1, 2}) {  // attention and MLP of the first block
      const TensorShare share = ShareOf(graph.layers[layer], kSamples, TokenSlice(), split);
      forward += Sent(share.forward, t);
      input += Sent(share.backward_input, t);
      weight += Sent(share.backward_weight, t);
      collectives += share.forward.size() + share.backward_input.size();
    }
    EXPECT_EQ(forward, 4 * bsh * (t - 1) / t);
    EXPECT_EQ(forward + input, 8 * bsh * (t - 1) / t);
    EXPECT_EQ(weight, split.sequence ? 2 * bsh * (t - 1) / t : 0);
    EXPECT_EQ(collectives, split.sequence ? 8u : 4u);
  }
}

// Cross attention also sums the gradient of the memory; the embedding sums its rows; the head three
// numbers a row and the gradient of its input.
TEST(TensorParallel, TrafficOfTheOtherLayers) {
  const ModelGraph graph = EncoderDecoder(0);
  const TensorParallel split{4, false};
  const int64_t mc = kSamples * kTokens * kHidden, nc = kSamples * kSourceTokens * kHidden;
  for (const LayerSpec& layer : graph.layers) {
    const TensorShare share = ShareOf(layer, kSamples, TokenSlice(), split);
    const int64_t forward = Sent(share.forward, 4) * 4 / 3 / 2,
                  backward = Sent(share.backward_input, 4) * 4 / 3 / 2;
    if (layer.kind == "cross_attention") {
      EXPECT_EQ(forward, mc);
      EXPECT_EQ(backward, mc + nc);
    } else if (layer.kind == "gpt_head") {
      EXPECT_EQ(forward, 3 * kSamples * kTokens);
      EXPECT_EQ(backward, mc);
    } else if (layer.kind == "gpt_embedding") {
      EXPECT_EQ(forward, layer.output_shape[0] == kTokens ? mc : nc);
      EXPECT_EQ(backward, 0);
    } else if (layer.kind == "norm") {
      EXPECT_EQ(forward + backward, 0);
    }
  }
}

// 12 h^2 + 13 h values a block: the products' weights, and the biases of the first ones, are
// divided; norms and the biases of the second ones are not.
TEST(TensorParallel, ParametersOfADevice) {
  const ModelGraph graph = Gpt(0);
  const int64_t h = kHidden;
  for (int64_t t : {1, 2, 4, 8}) {
    const TensorParallel split{t, false};
    int64_t block = 0, all = 0;
    for (const LayerSpec& layer : graph.layers) {
      for (const ParameterSpec& p : layer.parameters) {
        all += p.size_on(split);
        if (layer.name == "block0/attention" || layer.name == "block0/mlp")
          block += p.size_on(split);
      }
    }
    EXPECT_EQ(block, (12 * h * h + 7 * h) / t + 6 * h);
    // Two tables of words are divided; positions and the last norm are not.
    EXPECT_EQ(all, 2 * block + 2 * kWords * h / t + kTokens * h + 2 * h);
  }
}

// The dimension that is divided holds whole blocks of heads.
TEST(TensorParallel, EachPartOfAParameterIsWhole) {
  for (const ModelGraph& graph : Graphs()) {
    for (const LayerSpec& layer : graph.layers) {
      for (const ParameterSpec& p : layer.parameters) {
        if (p.split_dimension < 0) continue;
        ASSERT_LT(p.split_dimension, static_cast<int>(p.shape.size())) << p.name;
        EXPECT_EQ(p.shape[p.split_dimension] % (p.split_blocks * 8), 0) << p.name;
      }
    }
  }
}

// Korthikanti et al. 2022: with sequence parallelism a layer keeps 1 / t of all; without, norms'
// statistics and the layers' inputs and outputs are whole.
TEST(TensorParallel, SequenceParallelismDividesWhatIsKept) {
  for (const ModelGraph& graph : {Gpt(0.1), EncoderDecoder(0.1)}) {
    for (const LayerSpec& layer : graph.layers) {
      if (layer.kind == "gpt_head") continue;  // and a number a row
      const LayerCosts whole = layer.costs(kSamples);
      for (int64_t t : {2, 4, 8}) {
        const LayerCosts plain = CostsOf(layer, kSamples, TokenSlice(), {t, false});
        const LayerCosts sequence = CostsOf(layer, kSamples, TokenSlice(), {t, true});
        EXPECT_EQ(sequence.kept * t, whole.kept) << layer.name;
        EXPECT_EQ(sequence.output * t, whole.output) << layer.name;
        EXPECT_EQ(plain.output, whole.output) << layer.name;
        EXPECT_GE(plain.kept, sequence.kept) << layer.name;
      }
    }
  }
}

// An order of allocations: what is there, and the most that it was.
class Heap {
 public:
  void Take(int64_t n) {
    now_ += n;
    peak_ = std::max(peak_, now_);
  }
  void Free(int64_t n) { now_ -= n; }
  Bytes now() const { return Bytes(4) * now_; }
  Bytes peak() const { return Bytes(4) * peak_; }

 private:
  int64_t now_ = 0, peak_ = 0;
};

// A group's gather: the own rows become all, in a tensor of their own.
void Gather(bool scattered, int64_t all, int64_t own, Heap* heap) {
  if (!scattered) return;
  heap->Take(all);
  heap->Free(own);
}

// A sum: in place, or scattered to the own rows.
void Sum(bool scattered, int64_t all, int64_t own, Heap* heap) {
  if (!scattered) return;
  heap->Take(own);
  heap->Free(all);
}

// What the layers that run allocate (models/layers/gpt_mlp.cc, gpt_attention.cc), each with its
// part, and with the group's sums and gathers.
struct Branch {
  TensorParallel split;
  int64_t samples = kSamples, tokens = kTokens;
  bool dropout = false;

  int64_t m() const { return samples * tokens; }
  int64_t own() const { return split.scatters_rows() ? m() / split.degree : m(); }
  bool scattered() const { return split.scatters_rows(); }
};

// The heaps of a forward, and of an input part that a weight part follows at once (a fused
// backward): the most that there was before the weight part, and from there on.
struct Passes {
  Heap forward, backward;
  Bytes input_peak, input_end;

  void EndInput() {
    input_peak = backward.peak();
    input_end = backward.now();
  }
  // The first product's weight gradient, with the norm's output again.
  void NormAgain(const Branch& b) {
    backward.Take(b.own() * kHidden);
    Gather(b.scattered(), b.m() * kHidden, b.own() * kHidden, &backward);
  }
};

// `more`: gradients of other inputs, which the input part leaves beside dx.
void ExpectBytes(const LayerCosts& costs, const Passes& passes, Bytes dx, Bytes dy, Bytes more) {
  EXPECT_EQ(costs.forward_peak, passes.forward.peak());
  EXPECT_EQ(costs.kept + costs.output, passes.forward.now());
  EXPECT_EQ(costs.backward_input_peak, passes.input_peak);
  EXPECT_EQ(costs.kept_for_weight - costs.kept + dx - dy + more, passes.input_end);
  EXPECT_EQ(costs.backward_peak, passes.backward.peak());
}

// The branch's gradient: dy where nothing was dropped out of it.
void TakeBranchGradient(const Branch& b, Heap* heap) {
  const int64_t mc = b.m() * kHidden, own = b.own() * kHidden;
  if (b.dropout) heap->Take(own);
  if (b.scattered()) heap->Take(mc);
  if (b.scattered() && b.dropout) heap->Free(own);
}

// dy goes with the end of the input part, unless it is the branch's gradient.
void FreeOutputGradient(const Branch& b, Heap* heap) {
  if (b.dropout || b.scattered()) heap->Free(b.own() * kHidden);
}

void CheckMlp(const LayerSpec& layer, const Branch& b) {
  const int64_t mc = b.m() * kHidden, own = b.own() * kHidden,
                mf = b.m() * static_cast<int64_t>(Attribute(layer, "inner")) / b.split.degree;
  Passes p;
  Heap& f = p.forward;
  f.Take(2 * b.own());  // mean, rstd
  f.Take(own);          // norm
  Gather(b.scattered(), mc, own, &f);
  f.Take(mf);  // h
  f.Free(mc);  // norm
  f.Take(mf);  // gelu
  f.Take(mc);  // branch
  f.Free(mf);  // gelu
  Sum(b.scattered(), mc, own, &f);

  Heap& i = p.backward;
  TakeBranchGradient(b, &i);
  i.Take(mf);  // dh
  i.Take(mc);  // dnorm
  Sum(b.scattered(), mc, own, &i);
  i.Take(own);  // dx
  FreeOutputGradient(b, &i);
  p.EndInput();
  i.Free(mf + mc);  // h, dbranch
  i.Free(own);      // dnorm
  p.NormAgain(b);
  const Bytes x = Bytes(4) * own;
  ExpectBytes(CostsOf(layer, b.samples, TokenSlice(), b.split), p, x, x, Bytes(0));
}

void CheckAttention(const LayerSpec& layer, const Branch& b) {
  const int64_t t = b.split.degree, mc = b.m() * kHidden, own = b.own() * kHidden,
                mw = b.m() * kHidden / t, lse = b.m() * kHeads / t;
  const int64_t scratch = AttentionWorkspaceFloats(b.tokens, b.tokens);
  Passes p;
  Heap& f = p.forward;
  f.Take(2 * b.own());
  f.Take(own);  // norm
  Gather(b.scattered(), mc, own, &f);
  f.Take(3 * mw);  // qkv
  f.Free(mc);
  f.Take(mw);   // mix
  f.Take(lse);  // a number a row and head
  f.Take(scratch);
  f.Free(scratch);
  f.Take(mc);  // branch
  Sum(b.scattered(), mc, own, &f);

  Heap& i = p.backward;
  TakeBranchGradient(b, &i);
  i.Take(4 * mw);  // dmix, dqkv
  i.Take(2 * scratch);
  i.Free(2 * scratch);
  i.Free(mw + lse + 3 * mw);  // dmix, qkv
  i.Take(mc);                 // dnorm
  Sum(b.scattered(), mc, own, &i);
  i.Take(own);  // dx
  FreeOutputGradient(b, &i);
  p.EndInput();
  i.Free(mw + mc);  // mix, dbranch
  i.Free(own);      // dnorm
  p.NormAgain(b);
  const Bytes x = Bytes(4) * own;
  ExpectBytes(CostsOf(layer, b.samples, TokenSlice(), b.split), p, x, x, Bytes(0));
}

void CheckCross(const LayerSpec& layer, const Branch& b) {
  const int64_t t = b.split.degree, mc = b.m() * kHidden, own = b.own() * kHidden,
                mw = b.m() * kHidden / t, lse = b.m() * kHeads / t;
  const int64_t nc = b.samples * layer.input_shapes[1][0] * kHidden, nw = nc / t,
                own_memory = b.scattered() ? nc / t : nc;
  const int64_t scratch = AttentionWorkspaceFloats(b.tokens, layer.input_shapes[1][0]);
  Passes p;
  Heap& f = p.forward;
  f.Take(2 * b.own());
  f.Take(own);  // norm
  Gather(b.scattered(), mc, own, &f);
  f.Take(mw);  // q
  f.Free(mc);
  if (b.scattered()) f.Take(nc);  // the memory; its own rows stay, too
  f.Take(2 * nw);                 // kv
  if (b.scattered()) f.Free(nc);
  f.Take(mw);  // mix
  f.Take(lse);
  f.Take(scratch);
  f.Free(scratch);
  f.Take(mc);  // branch
  Sum(b.scattered(), mc, own, &f);

  Heap& i = p.backward;
  TakeBranchGradient(b, &i);
  i.Take(2 * mw + 2 * nw);  // dmix, dq, dkv
  i.Take(2 * scratch);
  i.Free(2 * scratch);
  i.Free(2 * mw + 2 * nw + lse);  // dmix, q, kv
  i.Take(mc);                     // dnorm
  Sum(b.scattered(), mc, own, &i);
  i.Take(own);  // dx
  i.Take(nc);   // of the memory
  Sum(b.scattered(), nc, own_memory, &i);
  FreeOutputGradient(b, &i);
  p.EndInput();
  i.Free(mw + mc);  // mix, dbranch
  Heap weight;
  weight.Free(mw + mc);
  if (b.scattered()) {
    i.Take(nc);
    weight.Take(nc);
    i.Free(nc);
  }
  i.Free(2 * nw);
  i.Free(own);
  p.NormAgain(b);
  const Bytes x = Bytes(4) * own;
  const LayerCosts costs = CostsOf(layer, b.samples, TokenSlice(), b.split);
  ExpectBytes(costs, p, x, x, Bytes(4) * own_memory);
  EXPECT_EQ(costs.backward_weight_peak, weight.peak());
}

void CheckHead(const LayerSpec& layer, const Branch& b) {
  const int64_t t = b.split.degree, m = b.m(), mc = m * kHidden, own = b.own() * kHidden,
                mv = m * kWords / t;
  Passes p;
  Heap& f = p.forward;
  f.Take(2 * b.own());
  f.Take(own);  // norm
  Gather(b.scattered(), mc, own, &f);
  f.Take(mv);  // logits
  if (t > 1) {
    f.Take(3 * m);  // largest, sum, the target's
    f.Free(2 * m);
  }
  f.Free(mc);

  Heap& i = p.backward;
  i.Take(mc);  // dnorm
  Sum(b.scattered(), mc, own, &i);
  i.Take(own);  // dx
  if (t > 1) i.Free(m);
  p.EndInput();
  i.Free(own);  // dnorm
  p.NormAgain(b);
  const Bytes x = Bytes(4) * own;
  ExpectBytes(CostsOf(layer, b.samples, TokenSlice(), b.split), p, x, Bytes(0), Bytes(0));
}

TEST(TensorParallel, BytesAreThoseOfTheOrderOfAllocations) {
  for (const double dropout : {0.0, 0.1}) {
    const ModelGraph graph = EncoderDecoder(dropout);
    std::vector<TensorParallel> splits = Splits();
    splits.push_back({1, false});
    for (const TensorParallel& split : splits) {
      SCOPED_TRACE(absl::StrCat("T=", split.degree, " sequence=", split.sequence, " ", dropout));
      Branch b;
      b.split = split;
      b.dropout = dropout > 0;
      int checked = 0;
      for (const LayerSpec& layer : graph.layers) {
        SCOPED_TRACE(layer.name);
        if (!layer.input_shapes.empty()) b.tokens = layer.input_shapes[0][0];
        if (layer.kind == "gpt_attention") CheckAttention(layer, b);
        if (layer.kind == "gpt_mlp") CheckMlp(layer, b);
        if (layer.kind == "cross_attention") CheckCross(layer, b);
        if (layer.kind == "gpt_head") CheckHead(layer, b);
        checked += layer.kind != "gpt_embedding" && layer.kind != "norm";
      }
      EXPECT_EQ(checked, 6);  // two of the encoder, three of the decoder, the head
    }
  }
}

// A slice of the tokens is split as whole samples are.
TEST(TensorParallel, SlicesAreSplitByHeads) {
  const LayerSpec attention = Gpt(0).layers[1];
  Bytes carried;
  for (const TokenSlice& slice : {TokenSlice{0, 10}, TokenSlice{10, 6}}) {
    const LayerCosts part = CostsOf(attention, kSamples, slice, {4, false});
    const LayerCosts whole = CostsOf(attention, kSamples, slice);
    EXPECT_DOUBLE_EQ(part.forward.value() * 4, whole.forward.value());
    EXPECT_EQ(part.kept_when_dropped * 4, whole.kept_when_dropped);
    EXPECT_EQ(part.output, whole.output);
    EXPECT_LT(part.forward_peak, whole.forward_peak);
    carried += part.carried;
  }
  EXPECT_EQ(carried, Bytes(0));
}

TEST(TensorParallel, WhatTheDegreeDoesNotDivide) {
  const auto refused = [](const ModelGraph& graph, TensorParallel split) {
    const absl::Status status = CheckTensorParallel(graph, split);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(refused(Gpt(0), {3, false}),
            "--tensor_parallel=3: must divide the 40 words of layer \"embedding\"; "
            "the nearest that divides every layer is 2");
  EXPECT_EQ(refused(Gpt(0), {20, false}),
            "--tensor_parallel=20: must divide the 8 heads of layer \"block0/attention\"; "
            "the nearest that divides every layer is 8");
  EXPECT_EQ(refused(Gpt(0), {0, false}), "--tensor_parallel=0: must be at least 1");
  EXPECT_EQ(refused(EncoderDecoder(0), {40, true}),
            "--sequence_parallel: --tensor_parallel=40 must divide the 24 tokens of layer "
            "\"encoder/embedding\"; the nearest that divides every layer is 8");
  for (const TensorParallel& split : Splits()) {
    EXPECT_THAT(CheckTensorParallel(Gpt(0), split), IsOk());
    EXPECT_THAT(CheckTensorParallel(EncoderDecoder(0), split), IsOk());
  }
  // BERT's dense layer is not split: every device computes it.
  BertConfig c;
  c.layers = 1;
  c.hidden = kHidden;
  c.heads = kHeads;
  c.tokens = kTokens;
  c.vocabulary = kWords;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph bert, BuildBert(c));
  EXPECT_THAT(CheckTensorParallel(bert, {4, false}), IsOk());
  EXPECT_THAT(refused(bert, {4, true}),
              HasSubstr("--sequence_parallel: layer \"dense\" (dense) cannot be split by tokens"));
}

}  // namespace
}  // namespace pipelab
