#include "models/graph/alike_layers.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipelab {
namespace {

using testing::ElementsAre;

LayerSpec Layer(const std::string& kind, double heads, std::vector<int> inputs) {
  LayerSpec layer;
  layer.kind = kind;
  layer.attributes["heads"] = heads;
  layer.inputs = std::move(inputs);
  layer.operations = [heads](int64_t samples, TokenSlice) {
    LayerOperations all;
    all.forward.resize(1);
    all.forward[0].flops = Flops(heads * static_cast<double>(samples));
    return all;
  };
  return layer;
}

TEST(FirstAlike, IsTheFirstOfEachKind) {
  ModelGraph graph;
  graph.layers = {Layer("embedding", 0, {}), Layer("attention", 8, {0}),
                  Layer("mlp", 0, {1}),      Layer("attention", 8, {2}),
                  Layer("mlp", 0, {3}),      Layer("attention", 8, {4})};
  // The first block has another input.
  EXPECT_THAT(FirstAlike(graph), ElementsAre(0, 1, 2, 3, 2, 3));
}

TEST(FirstAlike, TellsSizesOperationsAndListedLayersApart) {
  ModelGraph graph;
  graph.layers = {Layer("mlp", 8, {}), Layer("mlp", 4, {}), Layer("mlp", 8, {}), Layer("", 8, {}),
                  Layer("", 8, {}),    Layer("mlp", 8, {}), Layer("mlp", 8, {})};
  graph.layers[2].parameters.resize(1);
  graph.layers[5].operations = [](int64_t, TokenSlice) { return LayerOperations(); };
  EXPECT_THAT(FirstAlike(graph), ElementsAre(0, 1, 2, 3, 4, 5, 0));
}

}  // namespace
}  // namespace pipelab
