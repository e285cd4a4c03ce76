// Layer lists on tensor-parallel groups: what a file says of its layers becomes one device's part.
#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/files/layer_list_json.h"
#include "tools/base/json.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

// An embedding that every device computes, a block that is divided, a head whose time was measured.
constexpr char kModel[] = R"({"name": "m", "layers": [
  {"name": "embed", "flops": "1 Mflop", "output": "4 kB", "parameters": 100,
   "tensor_parallel": {"whole": "all", "tokens": 64}},
  {"name": "block", "inputs": ["embed"], "flops": "8 Mflop", "output": "4 kB", "kept": "64 kB",
   "workspace": "2 kB", "parameters": 4100,
   "tensor_parallel": {"divides": {"heads": 8}, "tokens": 64, "forward_sum": "4 kB",
                       "backward_sum": "8 kB",
                       "whole": {"work": 0.2, "kept": "16 kB", "parameters": 100}}},
  {"name": "head", "inputs": ["block"], "parameters": 800,
   "time": {"forward": {"fixed": "10 us", "per_sample": "400 us"}, "backward": "800 us"},
   "tensor_parallel": {"divides": {"words": 800}, "tokens": 64, "forward_sum": "0 B",
                       "backward_sum": "4 kB"}}]})";

ModelGraph Model() { return *MakeGraph(*ParseLayerList(kModel, "m.json"), "m.json"); }

int64_t KiloNumbers(double n) { return static_cast<int64_t>(n * 1000); }

TEST(ListedSplit, AGroupOfOneIsTheWholeLayer) {
  const ModelGraph graph = Model();
  for (const LayerSpec& layer : graph.layers) {
    const LayerCosts whole = layer.costs(3), one = layer.split.costs(3, {}, {1, true});
    EXPECT_EQ(one.forward, whole.forward);
    EXPECT_EQ(one.kept, whole.kept);
    EXPECT_EQ(one.output, whole.output);
    EXPECT_EQ(one.backward_peak, whole.backward_peak);
    EXPECT_THAT(layer.split.collectives(3, {}, {1, true}).forward, IsEmpty());
  }
  EXPECT_EQ(graph.num_parameters(), 5000);
}

TEST(ListedSplit, WorkAndBytesAreDividedButForWhatIsWhole) {
  const LayerSpec block = Model().layers[1];
  for (const int64_t t : {2, 4, 8}) {
    const TensorShare share = ShareOf(block, 3, TokenSlice(), {t, false});
    const double part = 0.2 + 0.8 / static_cast<double>(t);
    EXPECT_DOUBLE_EQ(share.costs.forward.value(), 24e6 * part);
    EXPECT_DOUBLE_EQ(share.costs.backward_weight.value(), 24e6 * part);
    EXPECT_DOUBLE_EQ(share.operations.forward[0].flops.value(), 24e6 * part);
    const int64_t kept = KiloNumbers(4 + 12.0 / static_cast<double>(t));  // of a sample
    EXPECT_EQ(share.costs.kept, FloatBytes(3 * kept));
    EXPECT_EQ(share.costs.output, FloatBytes(3 * 1000));
    EXPECT_EQ(share.costs.kept_for_weight, FloatBytes(3 * (kept + 1000)));
    EXPECT_EQ(share.costs.forward_peak, FloatBytes(3 * (kept + 1000 + 500)));
    EXPECT_EQ(share.operations.forward[0].numbers, 3 * (2000 + kept) + 100 + 4000 / t);
    int64_t parameters = 0;
    for (const ParameterSpec& p : block.parameters) parameters += p.size_on({t, false});
    EXPECT_EQ(parameters, 100 + 4000 / t);
    ASSERT_EQ(share.forward.size(), 1u);
    EXPECT_EQ(share.forward[0].kind, Collective::kAllReduce);
    EXPECT_EQ(share.forward[0].bytes, FloatBytes(3 * 1000));
    ASSERT_EQ(share.backward_input.size(), 1u);
    EXPECT_EQ(share.backward_input[0].bytes, FloatBytes(3 * 2000));
    EXPECT_THAT(share.backward_weight, IsEmpty());
  }
}

TEST(ListedSplit, MeasuredTimesAreDividedButForTheirFixedPart) {
  const LayerSpec head = Model().layers[2];
  for (const int64_t t : {2, 4}) {
    const TensorShare share = ShareOf(head, 3, TokenSlice(), {t, false});
    EXPECT_EQ(share.operations.forward[0].time, Microseconds(10 + 1200 / t));
    EXPECT_EQ(share.operations.backward_input[0].time, Microseconds(1200 / t));
    EXPECT_EQ(share.operations.backward_weight[0].time, Microseconds(1200 / t));
    EXPECT_THAT(share.forward, IsEmpty());
    EXPECT_EQ(share.backward_input.size(), 1u);
  }
}

// Rows are divided where every device had all of them, and the sums become gathers and scatters.
TEST(ListedSplit, SequenceParallelismDividesRows) {
  const ModelGraph graph = Model();
  const TensorShare share = ShareOf(graph.layers[1], 3, TokenSlice(), {4, true});
  EXPECT_DOUBLE_EQ(share.costs.forward.value(), 6e6);
  EXPECT_EQ(share.costs.output, FloatBytes(3 * 250));
  EXPECT_EQ(share.costs.kept, FloatBytes(3 * 4000));
  // The gathered 8 kB beside the workspace.
  EXPECT_EQ(share.costs.forward_peak, FloatBytes(3 * (4000 + 250 + 500 + 2000)));
  ASSERT_EQ(share.forward.size(), 2u);
  EXPECT_EQ(share.forward[0].kind, Collective::kAllGather);
  EXPECT_EQ(share.forward[0].bytes, FloatBytes(3 * 2000));
  EXPECT_EQ(share.forward[1].kind, Collective::kReduceScatter);
  EXPECT_EQ(share.forward[1].bytes, FloatBytes(3 * 1000));
  ASSERT_EQ(share.backward_input.size(), 2u);
  EXPECT_EQ(share.backward_input[0].bytes, FloatBytes(3 * 1000));
  EXPECT_EQ(share.backward_input[1].bytes, FloatBytes(3 * 2000));
  ASSERT_EQ(share.backward_weight.size(), 1u);
  EXPECT_EQ(share.backward_weight[0].kind, Collective::kAllGather);
  // The embedding has its own rows; its parameters stay whole.
  const TensorShare embed = ShareOf(graph.layers[0], 3, TokenSlice(), {4, true});
  EXPECT_DOUBLE_EQ(embed.costs.forward.value(), 0.75e6);
  EXPECT_EQ(embed.costs.output, FloatBytes(3 * 250));
  EXPECT_EQ(graph.layers[0].parameters[0].size_on({4, true}), 100);
}

TEST(ListedSplit, WrittenListsAreReadBack) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerList list, ParseLayerList(kModel, "m.json"));
  const std::string text = LayerListToJson(list);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerList again, ParseLayerList(text, "again"));
  EXPECT_EQ(LayerListToJson(again), text);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, MakeGraph(again, "again"));
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    for (const bool sequence : {false, true}) {
      const TensorShare a = ShareOf(Model().layers[i], 3, TokenSlice(), {4, sequence}),
                        b = ShareOf(graph.layers[i], 3, TokenSlice(), {4, sequence});
      EXPECT_EQ(a.costs.forward, b.costs.forward);
      EXPECT_EQ(a.costs.kept, b.costs.kept);
      EXPECT_EQ(a.costs.forward_peak, b.costs.forward_peak);
      EXPECT_EQ(a.backward_input.size(), b.backward_input.size());
    }
    EXPECT_EQ(CheckTensorParallel(graph, {8, true}), CheckTensorParallel(Model(), {8, true}));
  }
}

// The model with one change.
ModelGraph With(const std::function<void(json&)>& change) {
  json root = *ParseJson(kModel, "m");
  change(root["layers"]);
  return *MakeGraph(*ParseLayerList(DumpJson(root), "m.json"), "m.json");
}

TEST(ListedSplit, DegreesThatDoNotFitAreRefusedByName) {
  const auto refused = [](const ModelGraph& graph, TensorParallel split) {
    return std::string(CheckTensorParallel(graph, split, "T", "sequence").message());
  };
  EXPECT_THAT(CheckTensorParallel(Model(), {8, false}), IsOk());
  EXPECT_THAT(CheckTensorParallel(Model(), {8, true}), IsOk());
  EXPECT_EQ(refused(Model(), {3, false}),
            "T=3: must divide the 8 heads of layer \"block\"; the nearest that divides every "
            "layer is 2");
  const ModelGraph silent = With([](json& layers) { layers[2].erase("tensor_parallel"); });
  EXPECT_EQ(refused(silent, {4, false}),
            "T=4: layer \"head\" does not say how it splits (\"tensor_parallel\" in its file); T "
            "must be 1");
  EXPECT_THAT(CheckTensorParallel(silent, {1, true}), IsOk());
  const ModelGraph rows = With([](json& layers) { layers[0]["tensor_parallel"].erase("tokens"); });
  EXPECT_THAT(CheckTensorParallel(rows, {4, false}), IsOk());
  EXPECT_EQ(refused(rows, {4, true}),
            "sequence: layer \"embed\" (profiled) cannot be split by tokens");
}

void SplitRefuses(const std::function<void(json&)>& change, const std::string& message) {
  json root = *ParseJson(kModel, "m");
  change(root["layers"][1]["tensor_parallel"]);
  const absl::StatusOr<LayerList> list = ParseLayerList(DumpJson(root), "a.json");
  ASSERT_FALSE(list.ok()) << message;
  EXPECT_EQ(std::string(list.status().message()),
            absl::StrCat("a.json: layers[1].tensor_parallel", message));
}

TEST(ListedSplit, ErrorsNameFileKeyAndReason) {
  SplitRefuses([](json& j) { j = true; }, ": true: must be an object");
  SplitRefuses([](json& j) { j["sums"] = 1; },
               ".sums: unknown; known here: divides, forward_sum, backward_sum, whole, tokens; did "
               "you mean forward_sum or backward_sum?");
  SplitRefuses([](json& j) { j.erase("forward_sum"); },
               ".forward_sum: missing: what the group sums, of a sample; \"0 B\" for nothing");
  SplitRefuses([](json& j) { j.erase("divides"); }, ".divides: missing");
  SplitRefuses([](json& j) { j["divides"] = json::object(); },
               ".divides: needs a size that the group divides, such as \"heads\": 32");
  SplitRefuses([](json& j) { j["divides"]["heads"] = 0; },
               ".divides.heads: 0: must be a whole number from 1 to 1125899906842624");
  SplitRefuses([](json& j) { j["whole"] = "some"; },
               ".whole: \"some\": must be \"all\", or an object with \"work\", \"kept\" or "
               "\"parameters\"");
  SplitRefuses([](json& j) { j["whole"]["work"] = 1.5; },
               ".whole.work: 1.5: must be a share from 0 to 1");
  SplitRefuses([](json& j) { j["whole"]["kept"] = "65 kB"; },
               ".whole.kept: more than the layer's 64000 B");
  SplitRefuses([](json& j) { j["whole"]["parameters"] = 4101; },
               ".whole.parameters: 4101: must be a whole number from 0 to 4100");
  SplitRefuses([](json& j) { j["tokens"] = 0; },
               ".tokens: 0: must be a whole number from 1 to 1125899906842624");
}

TEST(ListedSplit, ListsMadeInCodeAreCheckedToo) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(LayerList list, ParseLayerList(kModel, "m.json"));
  list.layers[1].tensor_parallel->whole_kept = Bytes(64001);
  EXPECT_THAT(MakeGraph(list, "m").status().message(),
              HasSubstr("m: layer \"block\": tensor_parallel: what is whole of \"kept\""));
}

}  // namespace
}  // namespace pipelab
