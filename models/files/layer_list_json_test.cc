#include "models/files/layer_list_json.h"

#include <algorithm>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/files/example_files.h"
#include "tools/base/json.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using nlohmann::json;
using testing::ElementsAre;

std::string LayerListExample() {
  for (const EmbeddedText& file : ExampleFiles()) {
    if (file.name == "two_towers") return std::string(file.text);
  }
  ADD_FAILURE() << "no example two_towers";
  return "";
}

TEST(LayerListJson, ReadsTheExample) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerList list, ParseLayerList(LayerListExample(), "a.json"));
  EXPECT_EQ(list.name, "two-towers");
  EXPECT_EQ(list.bytes_per_number, 2);
  ASSERT_EQ(list.layers.size(), 6u);
  const auto& words = absl::get<PassCosts<Nanoseconds>>(list.layers[0].costs);
  EXPECT_EQ(words.forward.Of(2), Microseconds(80));
  EXPECT_EQ(words.backward_input.Of(2), Nanoseconds(0));
  EXPECT_EQ(words.backward_weight.Of(2), Microseconds(180));
  EXPECT_FALSE(list.layers[0].keeps_inputs);
  const ListedLayer& text = list.layers[1];
  EXPECT_THAT(text.inputs, ElementsAre("words"));
  const auto& flops = absl::get<PassCosts<Flops>>(text.costs);
  EXPECT_EQ(flops.forward.per_sample, Flops(12e9));
  EXPECT_EQ(flops.backward_input.per_sample, Flops(12e9));
  EXPECT_EQ(flops.backward_weight.per_sample, Flops(12e9));
  EXPECT_EQ(text.output, Bytes(1 << 20));
  EXPECT_EQ(text.kept, Bytes(8 << 20));
  EXPECT_EQ(text.workspace.Of(2), Bytes(5 << 20));
  EXPECT_EQ(text.parameters, 12600000);
  EXPECT_EQ(list.layers[3].operation, OperationKind::kConvolution);
  const auto& picture = absl::get<PassCosts<Nanoseconds>>(list.layers[4].costs);
  EXPECT_EQ(picture.forward.Of(10), Microseconds(12015));
  EXPECT_EQ(picture.backward_input.Of(10) + picture.backward_weight.Of(10), Microseconds(25030));
  EXPECT_THAT(MakeGraph(list, "a.json"), IsOk());
}

TEST(LayerListJson, WrittenListsAreReadBack) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(LayerList list, ParseLayerList(LayerListExample(), "a.json"));
  list.outputs = {"head", "words"};
  const std::string text = LayerListToJson(list);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerList again, ParseLayerList(text, "again"));
  EXPECT_EQ(LayerListToJson(again), text);
  EXPECT_EQ(again.outputs, list.outputs);
  EXPECT_EQ(again.source, list.source);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph before, MakeGraph(list, "before"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph after, MakeGraph(again, "after"));
  ASSERT_EQ(before.layers.size(), after.layers.size());
  for (size_t i = 0; i < before.layers.size(); ++i) {
    const LayerSpec &a = before.layers[i], &b = after.layers[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.inputs, b.inputs);
    EXPECT_EQ(a.input_use, b.input_use);
    EXPECT_EQ(a.output_shape, b.output_shape);
    for (int64_t samples : {1, 7}) {
      EXPECT_EQ(a.costs(samples).forward, b.costs(samples).forward);
      EXPECT_EQ(a.costs(samples).backward_weight, b.costs(samples).backward_weight);
      EXPECT_EQ(a.costs(samples).forward_peak, b.costs(samples).forward_peak);
      const auto x = a.operations(samples, TokenSlice()).backward_input;
      const auto y = b.operations(samples, TokenSlice()).backward_input;
      ASSERT_EQ(x.size(), y.size());
      for (size_t k = 0; k < x.size(); ++k) {
        EXPECT_EQ(x[k].kind, y[k].kind);
        EXPECT_EQ(x[k].time, y[k].time);
        EXPECT_EQ(x[k].numbers, y[k].numbers);
      }
    }
  }
  EXPECT_EQ(before.num_parameters(), after.num_parameters());
}

TEST(LayerListJson, WithoutParametersNoWeightPart) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const LayerList list,
      ParseLayerList(R"({"name": "m", "layers": [{"name": "a", "time": "3 ms"},
          {"name": "b", "time": {"forward": "3 ms", "backward": "5 ms"}, "inputs": ["a"]}]})",
                     "a.json"));
  const auto& a = absl::get<PassCosts<Nanoseconds>>(list.layers[0].costs);
  EXPECT_EQ(a.backward_input.per_sample, Milliseconds(3));
  EXPECT_EQ(a.backward_weight.per_sample, Nanoseconds(0));
  const auto& b = absl::get<PassCosts<Nanoseconds>>(list.layers[1].costs);
  EXPECT_EQ(b.backward_input.per_sample, Milliseconds(5));
  EXPECT_EQ(b.backward_weight.per_sample, Nanoseconds(0));
}

// The example with one change, which must be refused with this message.
void LayerListJsonRefuses(const std::function<void(json&)>& change, const std::string& message) {
  json root = *ParseJson(LayerListExample(), "example");
  change(root);
  const absl::StatusOr<LayerList> list = ParseLayerList(DumpJson(root), "a.json");
  ASSERT_FALSE(list.ok()) << message;
  EXPECT_EQ(list.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(list.status().message()), absl::StrCat("a.json: ", message));
}

TEST(LayerListJson, ErrorsNameFileKeyAndReason) {
  LayerListJsonRefuses(
      [](json& j) { j["colour"] = 1; },
      "colour: unknown; known here: name, source, bytes_per_number, layers, outputs");
  LayerListJsonRefuses([](json& j) { j.erase("name"); }, "name: missing");
  LayerListJsonRefuses([](json& j) { j.erase("layers"); }, "layers: missing");
  LayerListJsonRefuses([](json& j) { j["bytes_per_number"] = 8; },
                       "bytes_per_number: 8: must be a whole number from 1 to 4");
  LayerListJsonRefuses(
      [](json& j) { j["layers"][1]["params"] = 1; },
      "layers[1].params: unknown; known here: name, inputs, flops, operation, time, output, "
      "kept, keeps_inputs, workspace, parameters, tensor_parallel");
  LayerListJsonRefuses(
      [](json& j) { j["layers"][1].erase("flops"); },
      "layers[1].flops: missing, and so is \"time\": layer \"text/0\" has no cost");
  LayerListJsonRefuses([](json& j) { j["layers"][1]["time"] = "3 ms"; },
                       "layers[1].time: is there beside \"flops\"; give one of the two");
  LayerListJsonRefuses([](json& j) { j["layers"][1]["inputs"] = "words"; },
                       "layers[1].inputs: \"words\": must be a list");
  LayerListJsonRefuses([](json& j) { j["layers"][1]["inputs"] = {0}; },
                       "layers[1].inputs: must be a list of layers' names");
  LayerListJsonRefuses(
      [](json& j) { j["layers"][1]["parameters"] = -1; },
      "layers[1].parameters: -1: must be a whole number from 0 to 1125899906842624");
  LayerListJsonRefuses([](json& j) { j["layers"][1]["keeps_inputs"] = "no"; },
                       "layers[1].keeps_inputs: \"no\": must be true or false");
}

TEST(LayerListJson, QuantitiesHaveUnits) {
  LayerListJsonRefuses(
      [](json& j) { j["layers"][1]["flops"] = 12e9; },
      "layers[1].flops: must be a number and a unit in quotes, such as \"12 Gflop\", or an "
      "object with \"forward\"");
  LayerListJsonRefuses(
      [](json& j) { j["layers"][1]["flops"] = "12"; },
      "layers[1].flops: \"12\": the unit is missing; must be a number and a unit, such as "
      "\"2.5 Gflop\"");
  LayerListJsonRefuses(
      [](json& j) { j["layers"][1]["flops"] = "3 ms"; },
      "layers[1].flops: \"3 ms\": \"ms\" is not a unit here; must be a number and a unit, such "
      "as \"2.5 Gflop\"");
  LayerListJsonRefuses(
      [](json& j) { j["layers"][1]["output"] = "-1 B"; },
      "layers[1].output: \"-1 B\": must be finite and not negative, such as \"16 GiB\"");
  LayerListJsonRefuses(
      [](json& j) { j["layers"][1]["workspace"] = 4; },
      "layers[1].workspace: must be a number and a unit in quotes, such as \"8 MiB\", or an "
      "object of such with \"fixed\" and \"per_sample\"");
  LayerListJsonRefuses([](json& j) { j["layers"][1]["workspace"] = json::object(); },
                       "layers[1].workspace: needs \"per_sample\" or \"fixed\"");
  LayerListJsonRefuses([](json& j) { j["layers"][4]["time"]["forward"]["each"] = "1 ms"; },
                       "layers[4].time.forward.each: unknown; known here: fixed, per_sample");
  LayerListJsonRefuses(
      [](json& j) { j["layers"][4]["time"]["forward"]["fixed"] = "1"; },
      "layers[4].time.forward.fixed: \"1\": the unit is missing; must be a number and a unit, "
      "such as \"5 us\"");
}

TEST(LayerListJson, PassesAndOperations) {
  LayerListJsonRefuses([](json& j) { j["layers"][4]["time"].erase("forward"); },
                       "layers[4].time.forward: missing");
  LayerListJsonRefuses([](json& j) { j["layers"][4]["time"]["backward_input"] = "1 ms"; },
                       "layers[4].time.backward: is there beside its parts; give one of the two");
  LayerListJsonRefuses([](json& j) { j["layers"][4]["operation"] = "matmul"; },
                       "layers[4].operation: belongs to \"flops\", not \"time\"");
  LayerListJsonRefuses([](json& j) { j["layers"][1]["operation"] = "measured"; },
                       "layers[1].operation: what was measured has \"time\" in place of \"flops\"");
  LayerListJsonRefuses([](json& j) { j["layers"][1]["operation"] = "optimizer"; },
                       "layers[1].operation: optimizer steps follow from \"parameters\"");
  LayerListJsonRefuses([](json& j) { j["layers"][1]["operation"] = "conv"; },
                       "layers[1].operation: \"conv\" is unknown; did you mean convolution?");
}

}  // namespace
}  // namespace pipelab
