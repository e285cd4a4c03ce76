#include "pipelines/cluster/shape_rates.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/graph/operation.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr double kT = 1e12;

ShapeRates Products(std::vector<ShapeRate> shapes) {
  return ShapeRates::Make(OperationKind::kMatmul, std::move(shapes)).value();
}

TEST(ShapeRates, PassesOfOneProductHaveTheirOwn) {
  const ShapeRates rates = Products({{KernelPass::kWeightGradient, 1000, 200, 300, 1, 30},
                                     {KernelPass::kForward, 1000, 200, 300, 1, 10},
                                     {KernelPass::kInputGradient, 1000, 200, 300, 1, 20}});
  LayerOperations ops;
  AddMatmul(1000, 200, 300, &ops);
  const Operation* passes[] = {&ops.forward[0], &ops.backward_input[0], &ops.backward_weight[0]};
  double expected = 10 * kT;
  for (const Operation* o : passes) {
    EXPECT_TRUE(rates.Has(*o));
    EXPECT_DOUBLE_EQ(rates.RateOf(*o).value(), expected);
    expected += 10 * kT;
  }
  // The sizes of another pass are another shape.
  EXPECT_FALSE(rates.Has(MatmulOperation(1000, 300, 200)));
}

TEST(ShapeRates, OthersHaveTheGeometricMeanOfNeighbours) {
  const ShapeRates rates = Products({{KernelPass::kForward, 1000, 1000, 1000, 1, 10},
                                     {KernelPass::kForward, 4000, 1000, 1000, 1, 40}});
  EXPECT_FALSE(rates.Has(MatmulOperation(2000, 1000, 1000)));
  EXPECT_NEAR(*rates.RateOf(MatmulOperation(2000, 1000, 1000)), 20 * kT, 1e-3 * kT);
  // Twice as near to the one as to the other.
  const auto third = static_cast<int64_t>(std::llround(1000 * std::pow(4, 1.0 / 3)));
  EXPECT_NEAR(*rates.RateOf(MatmulOperation(third, 1000, 1000)), 10 * std::pow(4, 1.0 / 3) * kT,
              0.01 * kT);
  // Each from the other: 3 times too much, and three quarters too little.
  EXPECT_NEAR(rates.LeftOutError(), 3, 1e-9);
  EXPECT_FALSE(rates.RateOf(WeightGradientOperation(1000, 1000, 1000)).has_value());
}

TEST(ShapeRates, TheFifthNeighbourDoesNotCount) {
  std::vector<ShapeRate> shapes;
  for (int64_t m : {900, 950, 1050, 1100}) {
    shapes.push_back({KernelPass::kForward, m, 1000, 1000, 1, 10});
  }
  shapes.push_back({KernelPass::kForward, 1200, 1000, 1000, 1, 500});
  EXPECT_NEAR(*Products(shapes).RateOf(MatmulOperation(1000, 1000, 1000)), 10 * kT, 1e-6 * kT);
}

TEST(ShapeRates, TimeIsConstantBelowATileOfTheSmallest) {
  const ShapeRates rates = Products({{KernelPass::kForward, 512, 1024, 1024, 1, 80}});
  EXPECT_NEAR(*rates.RateOf(MatmulOperation(128, 1024, 1024)), 80 * kT, 1e-6 * kT);
  EXPECT_NEAR(*rates.RateOf(MatmulOperation(32, 1024, 1024)), 20 * kT, 1e-6 * kT);
}

TEST(ShapeRates, GroupsAreApartFromSingleProducts) {
  const ShapeRates rates = Products({{KernelPass::kForward, 100, 1000, 1000, 1, 50},
                                     {KernelPass::kForward, 100, 1000, 1000, 8, 5}});
  Operation grouped = MatmulOperation(100, 1000, 1000);
  EXPECT_DOUBLE_EQ(*rates.RateOf(grouped), 50 * kT);
  grouped.groups = 8;
  EXPECT_DOUBLE_EQ(*rates.RateOf(grouped), 5 * kT);
  grouped.groups = 4;
  EXPECT_NEAR(*rates.RateOf(grouped), 5 * kT, 1e-6 * kT);
}

// A list's flops are those of S (S + 1) / 2 pairs or so; a model's those of whole blocks of rows.
TEST(ShapeRates, AttentionIsOfTheSampleWhoseQueriesReadAsManyKeys) {
  const ShapeRates rates = ShapeRates::Make(OperationKind::kAttention,
                                            {{KernelPass::kForward, 4096, 8, 128, 1, 900},
                                             {KernelPass::kInputGradient, 4096, 8, 128, 1, 600}})
                               .value();
  const double causal = 2.0 * 4096 * 4096 * 8 * 128;
  const auto seconds = [&](const Operation& o) { return o.flops.value() / *rates.RateOf(o); };
  const double blocks = causal * (4096 + 64) / 4096;
  const Operation whole = AttentionOperation(Flops(blocks), 1, {4096, 8, 128});
  EXPECT_TRUE(rates.Has(whole));
  EXPECT_NEAR(seconds(whole), causal / (900 * kT), 1e-12);
  const Operation backward = AttentionGradientOperation(Flops(2.5 * blocks), 1, {4096, 8, 128});
  EXPECT_NEAR(seconds(backward), 2.5 * causal / (600 * kT), 1e-12);
  // A quarter of the tokens with all keys and four times the heads is as much of the same.
  const Operation part = AttentionOperation(Flops(blocks), 1, {1024, 32, 128});
  EXPECT_TRUE(rates.Has(part));
  EXPECT_NEAR(seconds(part), seconds(whole), 1e-12);
}

TEST(ShapeRates, EqualShapesBecomeOne) {
  const ShapeRates rates = Products(
      {{KernelPass::kForward, 10, 10, 10, 1, 4}, {KernelPass::kForward, 10, 10, 10, 1, 9}});
  ASSERT_EQ(rates.shapes().size(), 1u);
  EXPECT_NEAR(rates.shapes()[0].tflops, 6, 1e-12);
}

TEST(ShapeRates, RefusesWhatIsNoShape) {
  const auto error = [](OperationKind kind, ShapeRate shape) {
    return std::string(ShapeRates::Make(kind, {shape}).status().message());
  };
  const OperationKind product = OperationKind::kMatmul, attention = OperationKind::kAttention;
  EXPECT_THAT(error(product, {KernelPass::kForward, 0, 1, 1, 1, 1}),
              HasSubstr("shape 0: sizes must be from 1 to "));
  const double none = std::numeric_limits<double>::quiet_NaN();
  for (const double tflops : {0.0, -1.0, none, 1e7}) {
    EXPECT_THAT(error(product, {KernelPass::kForward, 1, 1, 1, 1, tflops}),
                HasSubstr("shape 0: Tflop/s must be above 0"));
  }
  EXPECT_THAT(error(attention, {KernelPass::kWeightGradient, 1, 1, 1, 1, 1}),
              HasSubstr("attention has no weight"));
  EXPECT_THAT(error(attention, {KernelPass::kForward, 1, 1, 1, 2, 1}),
              HasSubstr("attention has no groups"));
  EXPECT_THAT(std::string(ShapeRates::Make(product, {}).status().message()),
              HasSubstr("must have 1 to 4096 shapes, not 0"));
}

}  // namespace
}  // namespace pipelab
