// What layers promise beyond numbers: split and fused backward agree, dropout is keyed by step and
// sample, evaluation is without dropout, starts are keyed by name.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/reference/reference_backend.h"
#include "models/layers/data_view.h"
#include "models/layers/factory.h"
#include "models/layers/initialize.h"
#include "models/layers/test_layers.h"
#include "models/specs/dense_spec.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/patch_embedding_spec.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<float> ValuesOf(const Tensor& t) { return {t.f32().begin(), t.f32().end()}; }

LayerSpec Mlp(double dropout) { return BuildGpt(SmallGpt(dropout, false))->layers[2]; }

// The layer's output on one sample, `first_sample` of `step`.
std::vector<float> OutputOf(const LayerSpec& spec, int64_t step, int64_t first_sample,
                            bool training) {
  Arena arena;
  const auto backend = MakeReferenceBackend(&arena);
  LayerRig rig(spec, backend.get(), /*samples=*/1, training);
  rig.ctx.step = step;
  rig.ctx.first_sample = first_sample;
  const Tensor x = RandomTensor(backend.get(), {6, 16}, "x", 1);
  return ValuesOf(rig.layer->Forward(rig.ctx, {x}, &rig.stash));
}

TEST(Dropout, IsKeyedByLayerStepAndSample) {
  const LayerSpec spec = Mlp(0.5);
  const std::vector<float> one = OutputOf(spec, 3, 2, true);
  EXPECT_EQ(one, OutputOf(spec, 3, 2, true));
  EXPECT_NE(one, OutputOf(spec, 4, 2, true));
  EXPECT_NE(one, OutputOf(spec, 3, 3, true));
  LayerSpec other = BuildGpt(SmallGpt(0.5, false))->layers[4];
  ASSERT_EQ(other.name, "block1/mlp");
  other.parameters = spec.parameters;  // the same values: only the mask differs
  EXPECT_NE(one, OutputOf(other, 3, 2, true));
}

TEST(Dropout, IsOffInEvaluation) {
  EXPECT_EQ(OutputOf(Mlp(0.5), 3, 2, false), OutputOf(Mlp(0), 3, 2, true));
  EXPECT_NE(OutputOf(Mlp(0.5), 3, 2, true), OutputOf(Mlp(0), 3, 2, true));
}

TEST(Dropout, RowsOfAMicroBatchSeeTheirOwnMask) {
  const LayerSpec spec = Mlp(0.5);
  Arena arena;
  const auto backend = MakeReferenceBackend(&arena);
  LayerRig rig(spec, backend.get(), /*samples=*/2);
  Tensor x = backend->Allocate({12, 16});
  const Tensor half = RandomTensor(backend.get(), {6, 16}, "x", 1);
  backend->Copy(half, x.Rows(0, 6));
  backend->Copy(half, x.Rows(6, 12));
  rig.ctx.first_sample = 4;
  const Tensor y = rig.layer->Forward(rig.ctx, {x}, &rig.stash);
  EXPECT_EQ(ValuesOf(y.Rows(0, 6)), OutputOf(spec, 3, 4, true));
  EXPECT_EQ(ValuesOf(y.Rows(6, 12)), OutputOf(spec, 3, 5, true));
}

TEST(Initialize, IsKeyedByNameAndTie) {
  ParameterSpec a{"a", {1000}, InitKind::kNormal, 0.5, ""},
      b{"b", {1000}, InitKind::kNormal, 0.5, ""};
  const auto start = [](const ParameterSpec& p, uint64_t seed) {
    std::vector<float> v(p.size(), -1);
    InitializeParameter(p, seed, absl::MakeSpan(v));
    return v;
  };
  EXPECT_EQ(start(a, 1), start(a, 1));
  EXPECT_NE(start(a, 1), start(a, 2));
  EXPECT_NE(start(a, 1), start(b, 1));
  a.tie = b.tie = "shared";
  EXPECT_EQ(start(a, 1), start(b, 1));
  double squares = 0;
  for (float w : start(a, 1)) squares += w * w;
  EXPECT_NEAR(squares / 1000, 0.25, 0.25 * 4 * std::sqrt(2.0 / 1000));  // 4 standard errors
  a.init = InitKind::kOnes;
  EXPECT_EQ(start(a, 1), std::vector<float>(1000, 1));
  a.init = InitKind::kZeros;
  EXPECT_EQ(start(a, 1), std::vector<float>(1000, 0));
}

// A ReLU lets the gradient through where it lets the value through, and is a plain layer there.
TEST(Dense, ReluMasksValueAndGradient) {
  std::vector<LayerSpec> specs;  // without and with ReLU
  for (Activation activation : {Activation::kNone, Activation::kRelu}) {
    DenseSizes s;
    s.name = "dense";
    s.tokens = 5;
    s.in = 4;
    s.out = 9;
    s.activation = activation;
    specs.push_back(DenseSpec(s));
  }
  Arena arena;
  const auto backend = MakeReferenceBackend(&arena);
  LayerRig plain(specs[0], backend.get(), 2), relu(specs[1], backend.get(), 2);
  const std::vector<Tensor> x = RandomInputs(specs[0], backend.get(), 2);
  const Tensor h = plain.layer->Forward(plain.ctx, x, &plain.stash);
  const Tensor y = relu.layer->Forward(relu.ctx, x, &relu.stash);
  Tensor dy = RandomTensor(backend.get(), h.shape(), "dy", 1);
  Tensor masked = RandomTensor(backend.get(), h.shape(), "dy", 1);
  int open = 0;
  for (int64_t i = 0; i < h.size(); ++i) {
    EXPECT_EQ(y.f32()[i], h.f32()[i] > 0 ? h.f32()[i] : 0.0f);
    if (h.f32()[i] <= 0) masked.f32()[i] = 0;
    open += h.f32()[i] > 0;
  }
  EXPECT_GT(open, h.size() / 4);
  EXPECT_LT(open, 3 * h.size() / 4);
  EXPECT_EQ(ValuesOf(plain.layer->BackwardInput(plain.ctx, x, std::move(masked), &plain.stash)[0]),
            ValuesOf(relu.layer->BackwardInput(relu.ctx, x, std::move(dy), &relu.stash)[0]));
  plain.layer->BackwardWeight(plain.ctx, x, &plain.stash);
  relu.layer->BackwardWeight(relu.ctx, x, &relu.stash);
  for (int p : {DenseParameter::kW, DenseParameter::kB}) {
    EXPECT_EQ(ValuesOf(plain.parameters[p].gradient), ValuesOf(relu.parameters[p].gradient));
  }
}

TEST(Factory, NamesAnUnknownKind) {
  LayerSpec spec = Mlp(0);
  spec.kind = "convolution";
  EXPECT_THAT(MakeLayer(spec), StatusIs(absl::StatusCode::kInvalidArgument,
                                        AllOf(HasSubstr("\"block0/mlp\""),
                                              HasSubstr("\"convolution\""), HasSubstr("gpt_mlp"))));
}

// Nothing trains another model than the one that was asked for.
TEST(Factory, RefusesWhatIsPricedAlone) {
  GptAttentionSizes sizes;
  sizes.name = "a";
  sizes.tokens = 4;
  sizes.hidden = 8;
  sizes.heads = 2;
  EXPECT_THAT(MakeLayer(GptAttentionSpec(sizes)), IsOk());
  sizes.sinks = true;
  EXPECT_THAT(MakeLayer(GptAttentionSpec(sizes)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("layer \"a\" has sinks, which are priced and do not run")));
}

// Patches row by row, each as [row, column, channel], whatever the gradients agree on.
TEST(PatchEmbedding, TakesTheImageApart) {
  PatchEmbeddingSizes sizes;
  sizes.name = "patches";
  sizes.height = 4;
  sizes.width = 6;
  sizes.channels = 3;
  sizes.patch = 2;
  sizes.hidden = 5;
  Arena arena;
  const auto backend = MakeReferenceBackend(&arena);
  LayerRig rig(PatchEmbeddingSpec(sizes), backend.get(), /*samples=*/2);
  const Tensor y = rig.layer->Forward(rig.ctx, {}, &rig.stash);
  const auto image = rig.view.fields[0].f32(), w = rig.parameters[0].value.f32(),
             b = rig.parameters[1].value.f32(), positions = rig.parameters[2].value.f32();
  for (int64_t sample = 0; sample < 2; ++sample) {
    for (int64_t token = 0; token < 6; ++token) {
      for (int64_t c = 0; c < 5; ++c) {
        double sum = b[c] + positions[token * 5 + c];
        for (int64_t i = 0; i < 2 * 2 * 3; ++i) {
          const int64_t row = token / 3 * 2 + i / 6, column = token % 3 * 2 + i / 3 % 2;
          sum += double{image[((sample * 4 + row) * 6 + column) * 3 + i % 3]} * w[i * 5 + c];
        }
        EXPECT_NEAR(y.f32()[(sample * 6 + token) * 5 + c], sum, 1e-5);
      }
    }
  }
}

TEST(LoadData, SlicesAreCutOutOfWholeSamples) {
  LayerSpec spec;
  spec.data = {{"rows", FieldType::kFloat, {4, 3}}, {kTargets, FieldType::kId, {4}, 50}};
  const RandomData data(spec.data);
  Arena arena;
  const BatchView whole = LoadData(spec, data, &arena, /*step=*/1, /*first_sample=*/2, 5);
  EXPECT_EQ(whole.fields[0].shape(), (Shape{20, 3}));
  const TokenSlice slice = {1, 2};
  const BatchView part = LoadData(spec, data, &arena, 1, 2, 5, slice);
  EXPECT_EQ(part.fields[0].shape(), (Shape{10, 3}));
  EXPECT_EQ(part.fields[1].shape(), (Shape{10}));
  EXPECT_EQ(DataBytes(spec, 5, slice), Bytes(4 * (10 * 3 + 10)));
  for (int64_t row = 0; row < 10; ++row) {
    const int64_t from = row / 2 * 4 + 1 + row % 2;
    EXPECT_EQ(part.fields[1].i32()[row], whole.fields[1].i32()[from]);
    for (int64_t j = 0; j < 3; ++j) {
      EXPECT_EQ(part.fields[0].f32()[row * 3 + j], whole.fields[0].f32()[from * 3 + j]);
    }
  }
}

TEST(CheckData, NamesWhatDoesNotFit) {
  const ModelGraph graph = *BuildGpt(SmallGpt(0, false));
  const RandomTokens fits(6, 11), longer(7, 11), larger(6, 12), smaller(6, 10);
  const RandomData images({{kTokens, FieldType::kFloat, {6}}, {kTargets, FieldType::kId, {1}, 10}});
  const RandomData other({{"image", FieldType::kFloat, {6}}, {kTargets, FieldType::kId, {1}, 10}});
  EXPECT_THAT(CheckData(graph.layers[0], &fits), IsOk());
  EXPECT_THAT(CheckData(graph.layers[0], &smaller), IsOk());
  EXPECT_THAT(CheckData(graph.layers[1], nullptr), IsOk());
  const RandomData padded(
      {{kTokens, FieldType::kId, {6}, 11, /*padded=*/true}, {kTargets, FieldType::kId, {1}, 10}});
  EXPECT_THAT(CheckData(graph.layers[0], &padded),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ids below 11 [6] or none")));
  LayerSpec takes_padding = graph.layers[0];
  takes_padding.data[0].padded = true;
  EXPECT_THAT(CheckData(takes_padding, &padded), IsOk());
  EXPECT_THAT(CheckData(takes_padding, &fits), IsOk());
  EXPECT_THAT(CheckData(graph.layers[0], &images),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the data has numbers [6]")));
  EXPECT_THAT(CheckData(graph.layers[0], &other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("reads \"tokens\"; the data has \"image\", \"targets\"")));
  EXPECT_THAT(CheckData(graph.layers[0], nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no data source")));
  EXPECT_THAT(CheckData(graph.layers[0], &longer),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ids below 11 [6]; the data has ids below 11 [7]")));
  EXPECT_THAT(CheckData(graph.layers[5], &larger),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ids below 11 [6]; the data has ids below 12 [6]")));
}

}  // namespace
}  // namespace pipelab
