#include "models/files/layer_list.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ListedLayer Timed(const std::string& name, const std::vector<std::string>& inputs) {
  ListedLayer layer;
  layer.name = name;
  layer.inputs = inputs;
  layer.costs = PassCosts<Nanoseconds>{
      {Nanoseconds(5), Nanoseconds(10)}, {Nanoseconds(0), Nanoseconds(20)}, {}};
  layer.output = Bytes(400);
  return layer;
}

LayerList ListOf(const std::vector<ListedLayer>& layers) {
  LayerList list;
  list.name = "some";
  list.layers = layers;
  return list;
}

std::vector<std::string> NamesOf(const ModelGraph& graph) {
  std::vector<std::string> names;
  for (const LayerSpec& layer : graph.layers) names.push_back(layer.name);
  return names;
}

TEST(LayerList, AnyOrderBecomesTopological) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph,
                               MakeGraph(ListOf({Timed("d", {"b", "c"}), Timed("b", {"a"}),
                                                 Timed("a", {}), Timed("c", {"a"})}),
                                         "a.json"));
  EXPECT_THAT(NamesOf(graph), ElementsAre("a", "b", "c", "d", "loss"));
  EXPECT_THAT(graph.layers[3].inputs, ElementsAre(1, 2));
  EXPECT_THAT(graph.layers[4].inputs, ElementsAre(3));
  EXPECT_EQ(graph.name, "some");
  EXPECT_THAT(Validate(graph), IsOk());
  const LayerOperations loss = graph.layers[4].operations(8, TokenSlice());
  EXPECT_THAT(loss.forward, IsEmpty());
  EXPECT_THAT(loss.backward_input, IsEmpty());
  EXPECT_THAT(loss.backward_weight, IsEmpty());
  EXPECT_EQ(graph.layers[4].input_use, InputUse::kForward);
}

TEST(LayerList, ALastLayerWithoutOutputIsTheLoss) {
  std::vector<ListedLayer> layers = {Timed("a", {}), Timed("b", {"a"})};
  layers[1].output = absl::nullopt;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, MakeGraph(ListOf(layers), "a.json"));
  EXPECT_THAT(NamesOf(graph), ElementsAre("a", "b"));
  EXPECT_EQ(LossLayer(graph), 1);
}

TEST(LayerList, SeveralOutputsAreNamed) {
  LayerList list = ListOf({Timed("a", {}), Timed("loss", {"a"}), Timed("b", {"a"})});
  list.outputs = {"b", "loss"};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, MakeGraph(list, "a.json"));
  EXPECT_THAT(NamesOf(graph), ElementsAre("a", "loss", "b", "loss_"));
  EXPECT_THAT(graph.layers[3].inputs, ElementsAre(1, 2));
  // An output may have other consumers.
  list.outputs = {"a", "b", "loss"};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph more, MakeGraph(list, "a.json"));
  EXPECT_THAT(more.layers[3].inputs, ElementsAre(0, 1, 2));
}

void ExpectOperations(const std::vector<Operation>& pass, OperationKind kind, Flops flops,
                      int64_t numbers, Nanoseconds time) {
  ASSERT_EQ(pass.size(), 1u);
  EXPECT_EQ(pass[0].kind, kind);
  EXPECT_EQ(pass[0].flops, flops);
  EXPECT_EQ(pass[0].numbers, numbers);
  EXPECT_EQ(pass[0].time, time);
}

TEST(LayerList, MeasuredTimesAreFixedAndPerSample) {
  ListedLayer layer = Timed("a", {});
  layer.costs = SplitBackward<Nanoseconds>({Nanoseconds(5), Nanoseconds(10)},
                                           {Nanoseconds(7), Nanoseconds(21)}, true);
  layer.parameters = 3;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, MakeGraph(ListOf({layer}), "a.json"));
  for (int64_t samples : {1, 2, 64}) {
    const LayerOperations ops = graph.layers[0].operations(samples, TokenSlice());
    const auto expect = [&](const std::vector<Operation>& pass, int64_t time) {
      ExpectOperations(pass, OperationKind::kMeasured, Flops(0), 0, Nanoseconds(time));
    };
    expect(ops.forward, 5 + 10 * samples);
    expect(ops.backward_input, 4 + 11 * samples);
    expect(ops.backward_weight, 3 + 10 * samples);
    EXPECT_EQ(graph.layers[0].costs(samples).forward, Flops(0));
  }
}

TEST(LayerList, WithoutParametersTheBackwardIsTheInputPart) {
  const PassCosts<Flops> costs = SplitBackward<Flops>({Flops(0), Flops(3)}, {Flops(1), Flops(7)},
                                                      /*has_parameters=*/false);
  EXPECT_EQ(costs.backward_input.Of(2), Flops(15));
  EXPECT_EQ(costs.backward_weight.Of(2), Flops(0));
}

// a (100 numbers) -> b: 400 numbers kept, 50 handed on, 7000 parameters.
ListedLayer Computed() {
  ListedLayer layer = Timed("b", {"a"});
  layer.costs =
      PassCosts<Flops>{{Flops(0), Flops(10)}, {Flops(0), Flops(20)}, {Flops(1), Flops(30)}};
  layer.operation = OperationKind::kConvolution;
  layer.output = Bytes(200);
  layer.kept = Bytes(1600);
  layer.workspace = {Bytes(4000), Bytes(40)};
  layer.parameters = 7000;
  return layer;
}

TEST(LayerList, FlopsAreOneOperationOfItsTraffic) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph,
                               MakeGraph(ListOf({Timed("a", {}), Computed()}), "a.json"));
  const LayerSpec& b = graph.layers[1];
  for (int64_t samples : {1, 3}) {
    const LayerOperations ops = b.operations(samples, TokenSlice());
    const int64_t numbers = 7000 + samples * (100 + 50 + 400);
    const auto s = static_cast<double>(samples);
    const auto expect = [&](const std::vector<Operation>& pass, double flops) {
      ExpectOperations(pass, OperationKind::kConvolution, Flops(flops), numbers, Nanoseconds(0));
    };
    expect(ops.forward, 10 * s);
    expect(ops.backward_input, 20 * s);
    expect(ops.backward_weight, 1 + 30 * s);
    const LayerCosts costs = b.costs(samples);
    EXPECT_EQ(costs.forward, Flops(10 * s));
    EXPECT_EQ(costs.backward_input, Flops(20 * s));
    EXPECT_EQ(costs.backward_weight, Flops(1 + 30 * s));
  }
}

TEST(LayerList, MemoryFollowsFromBytes) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph,
                               MakeGraph(ListOf({Timed("a", {}), Computed()}), "a.json"));
  const LayerSpec& b = graph.layers[1];
  const LayerCosts costs = b.costs(3);
  EXPECT_EQ(costs.output, Bytes(600));
  EXPECT_EQ(costs.kept, Bytes(4800));
  EXPECT_EQ(costs.kept_for_weight, Bytes(5400));       // and the output's gradient
  EXPECT_EQ(costs.forward_peak, Bytes(5400 + 4120));   // results and workspace
  EXPECT_EQ(costs.backward_peak, Bytes(1200 + 4120));  // the input's gradient
  EXPECT_EQ(costs.backward_input_peak, Bytes(1200 + 4120));
  EXPECT_EQ(costs.backward_weight_peak, Bytes(4120));
  EXPECT_EQ(b.input_use, InputUse::kWeightGradient);
  EXPECT_EQ(graph.layers[0].input_use, InputUse::kInputGradient);
  EXPECT_EQ(graph.num_parameters(), 7000);
}

// The same numbers, whatever they had as bytes.
TEST(LayerList, GraphsHaveFourBytesANumber) {
  for (int64_t bytes : {1, 2, 4}) {
    ListedLayer layer = Timed("a", {});
    layer.output = Bytes(100 * bytes - (bytes - 1));  // rounded up
    layer.kept = Bytes(1000 * bytes);
    layer.workspace = {Bytes(10 * bytes), Bytes(bytes)};
    LayerList list = ListOf({layer});
    list.bytes_per_number = static_cast<int>(bytes);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, MakeGraph(list, "a.json"));
    const LayerCosts costs = graph.layers[0].costs(2);
    EXPECT_EQ(costs.output, Bytes(800)) << bytes;
    EXPECT_EQ(costs.kept, Bytes(8000)) << bytes;
    EXPECT_EQ(costs.forward_peak, Bytes(800 + 8000 + 48)) << bytes;
    EXPECT_THAT(graph.layers[0].output_shape, ElementsAre(100)) << bytes;
  }
}

// Two good layers with one change.
void MakeGraphRefuses(const std::function<void(LayerList&)>& change, const std::string& message) {
  LayerList list = ListOf({Timed("a", {}), Timed("b", {"a"}), Timed("c", {"b"})});
  change(list);
  const absl::StatusOr<ModelGraph> graph = MakeGraph(list, "a.json");
  ASSERT_FALSE(graph.ok()) << message;
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(graph.status().message()), absl::StrCat("a.json: ", message));
}

TEST(LayerList, ErrorsNameTheLayerAndTheReason) {
  MakeGraphRefuses([](LayerList& l) { l.layers.clear(); }, "layers: there are none");
  MakeGraphRefuses([](LayerList& l) { l.layers[0].inputs = {"c"}; },
                   "cyclic layers: \"a\" -> \"b\" -> \"c\" -> \"a\"");
  MakeGraphRefuses([](LayerList& l) { l.layers[1].inputs = {"b"}; },
                   "cyclic layers: \"b\" -> \"b\"");
  MakeGraphRefuses([](LayerList& l) { l.layers[2].inputs = {"B"}; },
                   "layer \"c\": inputs: unknown input \"B\": no layer has this name");
  MakeGraphRefuses(
      [](LayerList& l) {
        l.layers[2].inputs = {"b", "b"};
      },
      "layer \"c\": inputs: \"b\" is there twice");
  MakeGraphRefuses(
      [](LayerList& l) {
        l.layers[2].inputs = {"a", "b", "a"};
      },
      "layer \"c\": inputs: \"a\" is there twice");
  MakeGraphRefuses([](LayerList& l) { l.layers[2].name = "a"; },
                   "layers[2]: the name \"a\" is there twice");
  MakeGraphRefuses([](LayerList& l) { l.layers[2].name = ""; }, "layers[2]: the name is empty");
  MakeGraphRefuses(
      [](LayerList& l) { l.layers[2].inputs = {"a"}; },
      "layers: nothing takes the output of \"b\", \"c\": is an input missing? Where all of "
      "them end the model, list their names in \"outputs\"");
  MakeGraphRefuses(
      [](LayerList& l) {
        l.layers[2].inputs = {"a"};
        l.outputs = {"c"};
      },
      "layers: nothing takes the output of \"b\", and \"outputs\" does not have them");
  MakeGraphRefuses([](LayerList& l) { l.outputs = {"d"}; }, "outputs: no layer has the name \"d\"");
  MakeGraphRefuses([](LayerList& l) { l.outputs = {"c", "c"}; }, "outputs: \"c\" twice");
  MakeGraphRefuses([](LayerList& l) { l.layers[1].output = absl::nullopt; },
                   "layer \"b\": output: missing, and layer \"c\" takes it");
  MakeGraphRefuses([](LayerList& l) { l.bytes_per_number = 3; },
                   "bytes_per_number: 3: must be 1, 2 or 4");
}

TEST(LayerList, SizesHaveLimits) {
  const std::string flops = "layer \"b\": flops and time must be from 0 to 1 Yflop or 1000 s";
  const auto set_flops = [](LayerList& l, double flops) {
    l.layers[1].costs = PassCosts<Flops>{{}, {Flops(0), Flops(flops)}, {}};
  };
  MakeGraphRefuses([&](LayerList& l) { set_flops(l, -1); }, flops);
  MakeGraphRefuses([&](LayerList& l) { set_flops(l, 2e24); }, flops);
  MakeGraphRefuses([&](LayerList& l) { set_flops(l, std::numeric_limits<double>::quiet_NaN()); },
                   flops);
  MakeGraphRefuses(
      [](LayerList& l) {
        l.layers[1].costs = PassCosts<Nanoseconds>{{Nanoseconds(-1), Nanoseconds(0)}, {}, {}};
      },
      flops);
  MakeGraphRefuses([](LayerList& l) { l.layers[1].kept = Bytes(-1); },
                   "layer \"b\": bytes must be from 0 to 64 TiB");
  MakeGraphRefuses(
      [](LayerList& l) {
        for (ListedLayer& layer : l.layers) layer.kept = Bytes(int64_t{1} << 45);
      },
      "layers: together more than 64 TiB per sample");
  MakeGraphRefuses([](LayerList& l) { l.layers[1].parameters = -1; },
                   "layer \"b\": parameters must be from 0 to 1125899906842624");
  MakeGraphRefuses(
      [](LayerList& l) {
        for (ListedLayer& layer : l.layers) layer.parameters = int64_t{1} << 49;
      },
      "layers: together more than 1125899906842624 parameters");
}

// The loop is found wherever layers hang before and behind it, and a long one is cut.
TEST(LayerList, LongCyclesAreShownInPart) {
  std::vector<ListedLayer> layers = {Timed("x", {}), Timed("end", {"n0", "x"})};
  for (int i = 0; i < 20; ++i) {
    layers.push_back(Timed(absl::StrCat("n", i), {absl::StrCat("n", (i + 19) % 20)}));
  }
  layers[2].inputs.push_back("x");
  const absl::StatusOr<ModelGraph> graph = MakeGraph(ListOf(layers), "a.json");
  EXPECT_EQ(std::string(graph.status().message()),
            "a.json: cyclic layers: \"n0\" -> \"n1\" -> \"n2\" -> \"n3\" -> \"n4\" -> \"n5\" -> "
            "\"n6\" -> ... -> \"n19\" -> \"n0\"");
}

}  // namespace
}  // namespace pipelab
