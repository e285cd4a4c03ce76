// Networks of images from their graphs alone: parameter counts as published, groups, shapes, and
// what is refused.
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/amoebanet.h"
#include "models/zoo/resnet.h"
#include "models/zoo/unet.h"
#include "models/zoo/vgg.h"
#include "models/zoo/vit.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

AmoebaNetConfig Amoeba(int64_t layers, int64_t filters) {
  AmoebaNetConfig c;
  c.layers = layers;
  c.filters = filters;
  return c;
}

AmoebaNetConfig SmallAmoeba() {
  AmoebaNetConfig c = Amoeba(3, 32);
  c.height = c.width = 8;
  c.channels = 1;
  c.classes = 5;
  c.stem_stride = 1;
  c.stem_reductions = 0;
  return c;
}

TEST(AmoebaNet, ParameterCountsAreThoseOfGPipesTable1) {
  // Exact, and as published: 81.5M, 319.0M, 542.7M, 1.06B, 1.84B.
  struct Row {
    int64_t layers, filters, parameters;
    double millions;
  };
  for (const Row& row : {Row{18, 208, 81'505'540, 81.5}, Row{18, 416, 319'024'120, 319.0},
                         Row{18, 544, 542'734'840, 542.7}, Row{36, 544, 1'055'832'376, 1060},
                         Row{72, 512, 1'844'858'344, 1840}}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel m,
                                 BuildAmoebaNet(Amoeba(row.layers, row.filters)));
    EXPECT_EQ(m.graph.num_parameters(), row.parameters);
    EXPECT_NEAR(static_cast<double>(m.graph.num_parameters()) / 1e6, row.millions,
                0.005 * row.millions);
    EXPECT_EQ(m.num_groups(), row.layers + 6);
  }
}

// By hand: channels start at 8, and the first cell changes neither of its inputs' numbers.
TEST(AmoebaNet, ParametersOfANormalCellFollowTheClosedForm) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel m, BuildAmoebaNet(SmallAmoeba()));
  int64_t parameters = 0;
  for (const LayerSpec& layer : m.graph.layers) {
    if (!absl::StartsWith(layer.name, "cell1_normal/")) continue;
    for (const ParameterSpec& p : layer.parameters) parameters += p.size();
  }
  // C = 8: the reduced input and three 1x1 are C^2 + 2 C each; two bottlenecks of C/4.
  const int64_t c = 8, b = 2;
  const int64_t bottleneck = 2 * c * b + 14 * b * b + 6 * b + 2 * c;
  EXPECT_EQ(parameters, 4 * (c * c + 2 * c) + 2 * bottleneck);
}

TEST(AmoebaNet, CellsTakeTheTwoCellsBeforeThem) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel m, BuildAmoebaNet(Amoeba(6, 32)));
  ASSERT_EQ(m.group_of_layer.size(), m.graph.layers.size());
  for (size_t i = 0; i < m.graph.layers.size(); ++i) {
    std::set<int> groups;
    for (int input : m.graph.layers[i].inputs) groups.insert(m.group_of_layer[input]);
    for (int group : groups) EXPECT_LE(m.group_of_layer[i] - group, 2) << m.graph.layers[i].name;
  }
  // 224 halves five times; channels start at 8, double four times, and the last cells join four.
  const LayerSpec& pool = m.graph.layers[m.graph.layers.size() - 2];
  EXPECT_THAT(pool.input_shapes[0], ElementsAre(7 * 7, 8 * 16 * 4));
  EXPECT_THAT(pool.output_shape, ElementsAre(1, 8 * 16 * 4));
}

TEST(AmoebaNet, FlopsAreThoseOfItsConvolutions) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel m, BuildAmoebaNet(SmallAmoeba()));
  const LayerCosts stem = m.graph.layers[0].costs(4);
  EXPECT_EQ(stem.forward.value(), 2.0 * 4 * 64 * 9 * 1 * 8);
  EXPECT_EQ(stem.backward_input.value(), 0);  // nobody asks for the data's gradient
  EXPECT_EQ(stem.backward_weight.value(), stem.forward.value());
  EXPECT_EQ(stem.output, Bytes(4 * 4 * 64 * 8));
}

TEST(ResNet, ForCifar) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel model, BuildCifarResNet(110));
  EXPECT_EQ(model.num_groups(), 56);
  const auto conv = [](int64_t in, int64_t out, int64_t kernel) {
    return in * out * kernel * kernel + 2 * out;  // with its norm
  };
  const int64_t expected = conv(3, 16, 3) + 36 * conv(16, 16, 3) + conv(16, 32, 3) +
                           35 * conv(32, 32, 3) + conv(16, 32, 1) + conv(32, 64, 3) +
                           35 * conv(64, 64, 3) + conv(32, 64, 1) + 64 * 10 + 10;
  EXPECT_EQ(model.graph.num_parameters(), expected);
  EXPECT_THAT(BuildCifarResNet(111),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("depth=111 must be 6 n + 2")));
}

TEST(Vit, ParametersAndGroups) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel model, BuildVit(VitS4()));
  EXPECT_EQ(model.num_groups(), 14);
  const int64_t h = 384, patches = (4 * 4 * 3 + 1 + 64) * h, block = 12 * h * h + 13 * h;
  EXPECT_EQ(model.graph.num_parameters(), patches + 12 * block + 2 * h + (h + 1) * 10);
  // As google/vit-base-patch16-224 has them.
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel base, BuildVit(VitB16()));
  EXPECT_EQ(base.graph.num_parameters(), 86567656);
  VitConfig wrong = VitS4();
  wrong.patch = 5;
  EXPECT_THAT(BuildVit(wrong),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("patch=5 must divide")));
}

TEST(ResNet, ParameterCountsAreEverybodys) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel small, BuildResNet(ResNet50()));
  EXPECT_EQ(small.graph.num_parameters(), 25'557'032);
  EXPECT_EQ(small.num_groups(), 18);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel large, BuildResNet(ResNet101()));
  EXPECT_EQ(large.graph.num_parameters(), 44'549'160);
  // 4.09 billion multiplications and additions in convolutions and classifier.
  double flops = 0;
  for (const LayerSpec& layer : small.graph.layers) flops += layer.costs(1).forward.value();
  EXPECT_NEAR(flops / 2e9, 4.09, 0.01);
}

TEST(Vgg, ParameterCountIsEverybodys) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel m, BuildVgg16({}));
  EXPECT_EQ(m.graph.num_parameters(), 138'357'544);
  EXPECT_EQ(m.num_groups(), 16);
  double flops = 0;
  for (const LayerSpec& layer : m.graph.layers) flops += layer.costs(1).forward.value();
  EXPECT_NEAR(flops / 2e9, 15.47, 0.01);
}

TEST(UNet, ParameterCountFollowsTheClosedForm) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel m, BuildUNet({}));
  const auto level = [](int64_t in, int64_t out) { return 9 * out * (in + out) + 4 * out; };
  int64_t parameters = level(3, 64) + 2 * 64 + 2;
  for (int64_t w = 64; w <= 512; w *= 2) {
    parameters += level(w, 2 * w) + level(2 * w, w) + 4 * w * 2 * w;
  }
  EXPECT_EQ(m.graph.num_parameters(), parameters);
  // The 31,037,698 of the common implementation has biases in the up-convolutions as well.
  EXPECT_EQ(parameters, 31'037'698 - (512 + 256 + 128 + 64));
  EXPECT_EQ(m.num_groups(), 10);
}

TEST(UNet, SkipsCrossTheGroupsBetween) {
  UNetConfig c;
  c.levels = 3;
  c.side = 16;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel m, BuildUNet(c));
  int skips = 0;
  for (size_t i = 0; i < m.graph.layers.size(); ++i) {
    for (int input : m.graph.layers[i].inputs) {
      skips += m.group_of_layer[i] - m.group_of_layer[input] > 1;
    }
  }
  EXPECT_EQ(skips, 3);
}

TEST(LayerGroups, StagesTakeWholeGroups) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel m, BuildAmoebaNet(SmallAmoeba()));
  ASSERT_EQ(m.num_groups(), 7);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<int> stages, StagesOfGroups(m, {3, 2, 2}));
  for (size_t i = 0; i < stages.size(); ++i) {
    EXPECT_EQ(stages[i], m.group_of_layer[i] < 3 ? 0 : m.group_of_layer[i] < 5 ? 1 : 2);
  }
  const auto expect = [&m](std::vector<int> groups, const char* what) {
    EXPECT_THAT(StagesOfGroups(m, groups),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  expect({3, 0, 4}, "stage 1 of 0 groups");
  expect({3, 2147483647}, "stage 1 of 2147483647 groups");
  expect({3, 3}, "leave out some of 7");
}

TEST(ImageModels, BadConfigurationsNameFieldAndValue) {
  const auto amoeba = [](AmoebaNetConfig c, const char* what) {
    EXPECT_THAT(BuildAmoebaNet(c), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  amoeba(Amoeba(19, 208), "--layers=19: must be a multiple of 3");
  amoeba(Amoeba(0, 208), "--layers=0: ");
  amoeba(Amoeba(18, 200), "--filters=200: must be a multiple of 16");
  AmoebaNetConfig c = Amoeba(18, 208);
  c.height = 200;
  amoeba(c, "--height=200: must be a multiple of 32");
  c = Amoeba(18, 208);
  c.stem_reductions = 3;
  amoeba(c, "--stem_reductions=3: must be from 0 to 2");
  UNetConfig unet;
  unet.side = 40;
  EXPECT_THAT(BuildUNet(unet), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("--side=40: must be a multiple of 16")));
  VggConfig vgg;
  vgg.side = 100;
  EXPECT_THAT(BuildVgg16(vgg), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("--side=100: must be a multiple of 32")));
  ResNetConfig resnet = ResNet50();
  resnet.blocks[2] = 0;
  EXPECT_THAT(BuildResNet(resnet), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("--blocks=0: must be from 1 to")));
}

}  // namespace
}  // namespace pipelab
