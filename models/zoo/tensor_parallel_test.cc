// How the layers of the zoo's Transformers are split over a tensor-parallel group: parts add up to
// the whole, and the group sends what Megatron-LM's papers count.
#include "models/graph/tensor_parallel.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/specs/unfused_attention_spec.h"
#include "models/zoo/bert.h"
#include "models/zoo/gpt.h"
#include "models/zoo/split_models.h"
#include "models/zoo/vgg.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

ModelGraph Gpt(double dropout, Positions positions = Positions::kLearned) {
  GptConfig c;
  c.layers = 2;
  c.hidden = kHidden;
  c.heads = kHeads;
  c.tokens = kTargetTokens;
  c.vocabulary = kWords;
  c.dropout = dropout;
  c.positions = positions;
  return *BuildGpt(c);
}

ModelGraph Llama() {
  return *BuildGpt(
      LlamaConfig(/*layers=*/2, kHidden, kHeads, /*feed_forward=*/80, kTargetTokens, kWords));
}

ModelGraph Mixtral() {
  GptConfig c =
      LlamaConfig(/*layers=*/2, kHidden, kHeads, /*feed_forward=*/80, kTargetTokens, kWords);
  c.query_key_norms = true;
  c.experts.experts = 4;
  c.experts.chosen = 2;
  return *BuildGpt(c);
}

std::vector<ModelGraph> Graphs() {
  return {Gpt(0),
          Gpt(0.1, Positions::kSinusoidal),
          EncoderDecoder(0),
          EncoderDecoder(0.1),
          WithUnfusedAttention(Gpt(0.1)),
          Llama(),
          Mixtral()};
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
        // Each device has the whole router.
        const double more = layer.kind == "gpt_experts"
                                ? (t - 1) * MatmulFlops(kSamples * kTargetTokens,
                                                        WholeAttribute(layer, "experts"), kHidden)
                                                .value()
                                : 0;
        EXPECT_DOUBLE_EQ(share.costs.forward.value() * t, whole.forward.value() + more);
        EXPECT_DOUBLE_EQ(share.costs.backward_input.value() * t,
                         whole.backward_input.value() + more);
        EXPECT_DOUBLE_EQ(share.costs.backward_weight.value() * t,
                         whole.backward_weight.value() + more);
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
  const int64_t bsh = kSamples * kTargetTokens * kHidden;
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
  const int64_t mc = kSamples * kTargetTokens * kHidden, nc = kSamples * kSourceTokens * kHidden;
  for (const LayerSpec& layer : graph.layers) {
    const TensorShare share = ShareOf(layer, kSamples, TokenSlice(), split);
    const int64_t forward = Sent(share.forward, 4) * 4 / 3 / 2,
                  backward = Sent(share.backward_input, 4) * 4 / 3 / 2;
    if (layer.kind == "cross_attention") {
      EXPECT_EQ(forward, mc);
      EXPECT_EQ(backward, mc + nc);
    } else if (layer.kind == "gpt_head") {
      EXPECT_EQ(forward, 3 * kSamples * kTargetTokens);
      EXPECT_EQ(backward, mc);
    } else if (layer.kind == "gpt_embedding") {
      EXPECT_EQ(forward, layer.output_shape[0] == kTargetTokens ? mc : nc);
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
    EXPECT_EQ(all, 2 * block + 2 * kWords * h / t + kTargetTokens * h + 2 * h);
  }
}

// The dimension that is divided holds whole blocks of heads.
TEST(TensorParallel, EachPartOfAParameterIsWhole) {
  for (const ModelGraph& graph : Graphs()) {
    for (const LayerSpec& layer : graph.layers) {
      for (const ParameterSpec& p : layer.parameters) {
        if (p.split_dimension < 0) continue;
        ASSERT_LT(p.split_dimension, static_cast<int>(p.shape.size())) << p.name;
        EXPECT_EQ(p.shape[p.split_dimension] % (p.split_units() * 8), 0) << p.name;
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
  // BERT says that every device computes its dense layer; nobody says so of a convolution.
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel vgg, BuildVgg16({8, 16, 10, 32, 3}));
  EXPECT_EQ(refused(vgg.graph, {2, false}),
            "--tensor_parallel=2: layer \"conv1_1\" (image_conv) cannot be split; "
            "--tensor_parallel must be 1");
  BertConfig c;
  c.layers = 1;
  c.hidden = kHidden;
  c.heads = kHeads;
  c.tokens = kTargetTokens;
  c.vocabulary = kWords;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph bert, BuildBert(c));
  EXPECT_THAT(CheckTensorParallel(bert, {4, false}), IsOk());
  EXPECT_THAT(refused(bert, {4, true}),
              HasSubstr("--sequence_parallel: layer \"dense\" (dense) cannot be split by tokens"));
}

}  // namespace
}  // namespace pipelab
