#include "models/graph/layer_spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

LayerSpec MakeLayer(std::string name, std::vector<int> inputs,
                    std::vector<ParameterSpec> parameters) {
  LayerSpec layer;
  layer.name = std::move(name);
  layer.kind = "linear";
  layer.inputs = std::move(inputs);
  layer.input_shapes.assign(layer.inputs.size(), {4});
  layer.output_shape = {4};
  layer.parameters = std::move(parameters);
  layer.costs = [](int64_t) { return LayerCosts{}; };
  layer.operations = [](int64_t, TokenSlice) { return LayerOperations{}; };
  return layer;
}

// a feeds b and c, c is the loss.
ModelGraph MakeGraph() {
  ModelGraph g;
  g.name = "small";
  g.layers = {
      MakeLayer("a", {}, {{"a/w", {3, 4}, InitKind::kNormal, 0.5, "shared"}}),
      MakeLayer("b", {0},
                {{"b/w", {4, 4}, InitKind::kZeros, 0, ""}, {"b/b", {4}, InitKind::kOnes, 0, ""}}),
      MakeLayer("c", {1, 0}, {{"c/w", {3, 4}, InitKind::kNormal, 0.5, "shared"}})};
  g.layers[2].output_shape.clear();
  return g;
}

void ExpectError(const ModelGraph& g, const char* first, const char* second) {
  EXPECT_THAT(Validate(g), StatusIs(absl::StatusCode::kInvalidArgument,
                                    AllOf(HasSubstr(first), HasSubstr(second))));
}

TEST(ModelGraph, StatisticsAreNoParametersAndHaveNamesOfTheirOwn) {
  ModelGraph g = MakeGraph();
  g.layers[1].statistics = {{"b/running_mean", {4}, InitKind::kZeros, 0, ""}};
  EXPECT_THAT(Validate(g), IsOk());
  EXPECT_EQ(g.num_parameters(), 12 + 16 + 4);
  g.layers[1].statistics[0].name = "b/b";
  ExpectError(g, "layer \"b\"", "parameter \"b/b\" exists already");
  g.layers[1].statistics[0] = {"b/running_mean", {4}, InitKind::kZeros, 0, "own"};
  ExpectError(g, "layer \"b\"", "statistics \"b/running_mean\" are tied");
}

TEST(ModelGraph, CountsTiedParametersOnce) {
  const ModelGraph g = MakeGraph();
  EXPECT_THAT(Validate(g), IsOk());
  EXPECT_EQ(g.layers[0].parameters[0].size(), 12);
  EXPECT_EQ(g.num_parameters(), 12 + 16 + 4);
}

TEST(Validate, NamesWhatIsWrong) {
  ModelGraph g;
  g.name = "nothing";
  ExpectError(g, "nothing", "no layers");
  g = MakeGraph();
  g.layers[2].name = "a";
  ExpectError(g, "\"a\"", "two layers");
  g = MakeGraph();
  g.layers[1].name = "";
  ExpectError(g, "layer 1", "no name");
  g = MakeGraph();
  g.layers[1].inputs = {1};
  ExpectError(g, "\"b\"", "input 1");
  g = MakeGraph();
  g.layers[0].output_shape.clear();
  ExpectError(g, "\"b\"", "\"a\", which has no output");
  g = MakeGraph();
  g.layers[1].costs = nullptr;
  ExpectError(g, "\"b\"", "no costs");
  g = MakeGraph();
  g.layers[1].operations = nullptr;
  ExpectError(g, "\"b\"", "no operations");
  g = MakeGraph();
  g.layers[1].kind = "";
  ExpectError(g, "\"b\"", "no kind");
}

TEST(Validate, NamesEdgesThatDoNotFit) {
  ModelGraph g = MakeGraph();
  g.layers[2].inputs = {1, 1};
  ExpectError(g, "\"c\"", "\"b\" twice");
  g = MakeGraph();
  g.layers[2].detached = {0, 2};
  ExpectError(g, "\"c\"", "is detached from layer 2, which it does not take");
  g = MakeGraph();
  g.layers[2].input_shapes.pop_back();
  ExpectError(g, "\"c\"", "2 inputs, but the shapes of 1");
  g = MakeGraph();
  g.layers[2].input_shapes[1] = {2, 4};
  ExpectError(g, "\"c\": takes samples of [2, 4]", "\"a\" makes [4]");
  g = MakeGraph();
  g.layers[2].inputs = {2, 0};  // a cycle of one
  ExpectError(g, "\"c\"", "inputs are earlier layers");
}

TEST(Validate, AsksForOneLossThatEverythingLeadsTo) {
  ModelGraph g = MakeGraph();
  g.layers[2].inputs = {0};
  g.layers[2].input_shapes.pop_back();
  ExpectError(g, "\"b\"", "nothing takes its output");
  g = MakeGraph();
  g.layers[2].output_shape = {4};
  ExpectError(g, "\"c\"", "it is not a loss");
  g = MakeGraph();
  g.layers[1].output_shape.clear();
  g.layers[2].inputs = {0};
  g.layers[2].input_shapes.pop_back();
  ExpectError(g, "\"c\"", "a loss, and so is \"b\"");
}

TEST(ModelGraph, ConsumersAndLoss) {
  const ModelGraph g = MakeGraph();
  EXPECT_EQ(Consumers(g), (std::vector<std::vector<int>>{{1, 2}, {2}, {}}));
  EXPECT_EQ(LossLayer(g), 2);
}

TEST(Validate, NamesBadParameters) {
  ModelGraph g = MakeGraph();
  g.layers[1].parameters[1].name = "a/w";
  ExpectError(g, "\"b\"", "\"a/w\" exists already");
  g = MakeGraph();
  g.layers[1].parameters[1].shape = {0};
  ExpectError(g, "\"b/b\"", "dimension of 0");
  g = MakeGraph();
  g.layers[2].parameters[0].shape = {4, 3};
  ExpectError(g, "\"c/w\" ([4, 3] normal 0.5)", "\"a/w\" ([3, 4] normal 0.5)");
  g = MakeGraph();
  g.layers[2].parameters[0].stddev = 0.25;
  ExpectError(g, "normal 0.25", "shape and start");
}

TEST(LayerSpec, AWidthChangesBytesOrIsRefusedByName) {
  ModelGraph g = MakeGraph();
  for (LayerSpec& layer : g.layers) {
    SetCosts(&layer, [](NumberWidth width, LayerSpec* l) {
      l->costs = [width](int64_t samples) {
        LayerCosts costs;
        costs.kept = width(4 * samples) + FloatBytes(samples);
        return costs;
      };
    });
    EXPECT_EQ(layer.costs(3).kept, Bytes(60));
  }
  const absl::StatusOr<ModelGraph> narrow = WithNumberWidth(g, {2}, "--dtype=bf16");
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_EQ(narrow->width.bytes, 2);
  for (const LayerSpec& layer : narrow->layers) EXPECT_EQ(layer.costs(3).kept, Bytes(36));
  EXPECT_EQ(g.layers[0].costs(3).kept, Bytes(60));
  g.layers[1].set_costs = nullptr;
  EXPECT_TRUE(WithNumberWidth(g, {4}, "--dtype=fp32").ok());
  EXPECT_EQ(WithNumberWidth(g, {2}, "--dtype=bf16").status().message(),
            "--dtype=bf16: layer \"b\" (linear) computes with float32 alone; take fp32");
}

TEST(LayerSpec, DataBytesFollowWhatItReads) {
  LayerSpec layer = MakeLayer("a", {}, {});
  EXPECT_EQ(DataBytes(layer, 3), Bytes(0));
  layer.data = {{"tokens", FieldType::kId, {7}, 11}};
  EXPECT_EQ(DataBytes(layer, 3), Bytes(3 * 7 * 4));
  layer.data.push_back({"image", FieldType::kFloat, {2, 3, 5}});
  EXPECT_EQ(DataBytes(layer, 3), Bytes(3 * (7 + 30) * 4));
  EXPECT_DEATH(Attribute(layer, "heads"), "\"a\" \\(linear\\) has no attribute \"heads\"");
}

}  // namespace
}  // namespace pipelab
