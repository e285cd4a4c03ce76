// Layers on a graph: gradients against finite differences, rows that do not depend on where they
// lie, and memory and flops as their specifications say.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/reference/reference_backend.h"
#include "models/data/graph_store.h"
#include "models/layers/graph_index.h"
#include "models/layers/test_layers.h"
#include "models/specs/graph_conv_spec.h"

namespace pipelab {
namespace {

constexpr int64_t kIn = 6, kOut = 8;

GraphBlock TestBlock() {
  const GraphData data = GenerateGraph({PowerLawDegrees(60, 1.5, 1, 12, 2)}, 3);
  NeighbourSampler sampler(&data.graph, {4}, 2);
  return sampler.Sample(0, {3, 7, 20, 41, 59}).blocks[0];
}

GraphConvSizes GraphSizes(GraphConvKind kind, const GraphBlock& block) {
  GraphConvSizes s;
  s.name = "conv";
  s.kind = kind;
  s.counts = {block.num_sources(), block.num_targets, block.num_edges()};
  s.in = kIn;
  s.out = kOut;
  s.heads = kind == GraphConvKind::kGat ? 2 : 1;
  return s;
}

class GraphConvTest : public testing::TestWithParam<GraphConvKind> {
 protected:
  GraphConvTest() : block_(TestBlock()) {
    backend_ = MakeReferenceBackend(&arena_);
    index_ = MakeGraphIndex(block_, backend_.get());
  }
  std::unique_ptr<LayerRig> RigOf(const GraphConvSizes& sizes) {
    auto rig = std::make_unique<LayerRig>(GraphConvSpec(sizes), backend_.get(), 1);
    rig->ctx.graph = absl::MakeConstSpan(&index_, 1);
    return rig;
  }

  Arena arena_;
  std::unique_ptr<Backend> backend_;
  const GraphBlock block_;
  GraphIndex index_;
};

// (4 D(h) - D(2h)) / 3 of <weight, y> along each tensor's gradient. Small steps, since leaky_relu
// has a kink.
TEST_P(GraphConvTest, GradientsAreFiniteDifferences) {
  GraphConvSizes sizes = GraphSizes(GetParam(), block_);
  sizes.relu = false;  // no kinks
  const auto rig = RigOf(sizes);
  const std::vector<Tensor> inputs = RandomInputs(rig->spec, backend_.get(), 1);
  const auto weight = [&] { return RandomTensor(backend_.get(), {5, kOut}, "weight", 1); };
  const auto value = [&] {
    LayerStash stash;
    const Tensor y = rig->layer->Forward(rig->ctx, inputs, &stash);
    double sum = 0;
    const Tensor w = weight();
    for (int64_t i = 0; i < y.size(); ++i) sum += double{y.f32()[i]} * w.f32()[i];
    return sum;
  };
  rig->layer->Forward(rig->ctx, inputs, &rig->stash);
  const auto dx = rig->layer->BackwardInput(rig->ctx, inputs, weight(), &rig->stash);
  rig->layer->BackwardWeight(rig->ctx, inputs, &rig->stash);
  const auto check = [&](const std::string& name, const Tensor& x, const Tensor& gradient) {
    const std::vector<float> start(x.f32().begin(), x.f32().end());
    double squares = 0;
    for (float g : gradient.f32()) squares += double{g} * g;
    ASSERT_GT(squares, 0) << name;
    const auto difference = [&](double h) {
      const auto at = [&](double step) {
        for (int64_t i = 0; i < x.size(); ++i) {
          x.f32()[i] = static_cast<float>(start[i] + step * gradient.f32()[i] / std::sqrt(squares));
        }
        return value();
      };
      return (at(h) - at(-h)) / (2 * h);
    };
    const double h = 0.001, want = (4 * difference(h) - difference(2 * h)) / 3;
    std::copy(start.begin(), start.end(), x.f32().begin());
    // What the reference rounds: 2^-24 of each of 40 outputs below 10, over h.
    EXPECT_NEAR(std::sqrt(squares), want, 1e-3 * want + 0.004) << name;
  };
  check("x", inputs[0], dx[0]);
  for (size_t i = 0; i < rig->parameters.size(); ++i) {
    check(rig->spec.parameters[i].name, rig->parameters[i].value, rig->parameters[i].gradient);
  }
}

// Sources in another order behind the targets: the same rows of targets, with dropout too.
TEST_P(GraphConvTest, RowsDoNotDependOnPlaces) {
  GraphConvSizes sizes = GraphSizes(GetParam(), block_);
  sizes.dropout = 0.5;
  const auto rig = RigOf(sizes);
  const std::vector<Tensor> inputs = RandomInputs(rig->spec, backend_.get(), 1);
  const Tensor y = rig->layer->Forward(rig->ctx, inputs, &rig->stash);
  GraphBlock other = block_;
  const int32_t targets = block_.num_targets, sources = block_.num_sources();
  std::vector<int32_t> place(sources);
  std::iota(place.begin(), place.end(), 0);
  std::reverse(place.begin() + targets, place.end());
  const Tensor moved = backend_->Allocate(inputs[0].shape());
  for (int32_t s = 0; s < sources; ++s) {
    other.sources[place[s]] = block_.sources[s];
    std::copy_n(&inputs[0].f32()[s * kIn], kIn, &moved.f32()[place[s] * kIn]);
  }
  for (int32_t& e : other.edges) e = place[e];
  const GraphIndex index = MakeGraphIndex(other, backend_.get());
  rig->ctx.graph = absl::MakeConstSpan(&index, 1);
  LayerStash stash;
  const Tensor again = rig->layer->Forward(rig->ctx, {moved}, &stash);
  EXPECT_EQ(std::vector<float>(y.f32().begin(), y.f32().end()),
            std::vector<float>(again.f32().begin(), again.f32().end()));
  EXPECT_GT(std::count(y.f32().begin(), y.f32().end(), 0.0f), y.size() / 4);
}

TEST_P(GraphConvTest, MemoryIsAsSpecified) {
  for (bool input_gradient : {true, false}) {
    GraphConvSizes sizes = GraphSizes(GetParam(), block_);
    sizes.dropout = 0.5;
    sizes.input_gradient = input_gradient;
    const auto rig = RigOf(sizes);
    const LayerCosts costs = rig->spec.costs(1);
    const std::vector<Tensor> inputs = RandomInputs(rig->spec, backend_.get(), 1);
    const Bytes base = arena_.current_transient();
    const auto held = [&] { return arena_.current_transient() - base; };
    arena_.ResetPeaks();
    Tensor y = rig->layer->Forward(rig->ctx, inputs, &rig->stash);
    EXPECT_EQ(arena_.peak_transient() - base, costs.forward_peak);
    EXPECT_EQ(Bytes(y.bytes()), costs.output);
    EXPECT_EQ(held(), costs.kept + costs.output);
    Tensor dy = RandomTensor(backend_.get(), y.shape(), "dy", 1);
    const Bytes before = arena_.current_transient();
    arena_.ResetPeaks();
    auto dx = rig->layer->BackwardInput(rig->ctx, inputs, std::move(dy), &rig->stash);
    EXPECT_EQ(arena_.peak_transient() - before, costs.backward_input_peak);
    EXPECT_EQ(dx[0].empty(), !input_gradient);
    dx.clear();
    y = Tensor();
    EXPECT_EQ(held(), costs.kept_for_weight);
    rig->layer->BackwardWeight(rig->ctx, inputs, &rig->stash);
    EXPECT_EQ(held(), Bytes(0));
  }
}

TEST_P(GraphConvTest, FlopsAreThoseOfItsOperations) {
  for (bool input_gradient : {true, false}) {
    GraphConvSizes sizes = GraphSizes(GetParam(), block_);
    sizes.input_gradient = input_gradient;
    const LayerSpec spec = GraphConvSpec(sizes);
    const LayerCosts costs = spec.costs(1);
    const LayerOperations ops = spec.operations(1, TokenSlice());
    const auto sum = [](const std::vector<Operation>& all) {
      Flops flops;
      for (const Operation& o : all) flops += o.flops;
      return flops;
    };
    EXPECT_EQ(sum(ops.forward), costs.forward);
    EXPECT_EQ(sum(ops.backward_input), costs.backward_input);
    EXPECT_EQ(sum(ops.backward_weight), costs.backward_weight);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GraphConvTest,
                         testing::Values(GraphConvKind::kSage, GraphConvKind::kGin,
                                         GraphConvKind::kGat));

}  // namespace
}  // namespace pipelab
