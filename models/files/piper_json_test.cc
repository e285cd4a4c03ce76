#include "models/files/piper_json.h"

#include <functional>
#include <string>
#include <vector>

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
using testing::Pair;

std::string PiperExample() {
  for (const EmbeddedText& file : ExampleFiles()) {
    if (file.name == "piper") return std::string(file.text);
  }
  ADD_FAILURE() << "no example piper";
  return "";
}

TEST(PiperJson, ReadsTheExample) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PiperProblem p, ParsePiper(PiperExample(), "a.json"));
  EXPECT_EQ(p.memory_bytes, 16e9);
  EXPECT_EQ(p.devices, 4);
  EXPECT_EQ(p.bandwidth, BytesPerSecond(25e9));
  EXPECT_EQ(p.micro_batches, 64);
  ASSERT_EQ(p.nodes.size(), 4u);
  ASSERT_EQ(p.edges.size(), 4u);
  EXPECT_EQ(p.edges[1].from, 1);
  EXPECT_EQ(p.edges[1].to, 2);
  EXPECT_EQ(p.edges[1].bytes, 4096);
  EXPECT_EQ(p.nodes[1].id, 1);
  EXPECT_EQ(p.nodes[1].name, "embed");
  ASSERT_EQ(p.nodes[1].variants.size(), 2u);
  EXPECT_EQ(p.nodes[3].variants.size(), 1u);
  const PiperVariant& recompute = p.nodes[0].variants.at(2).at(1);
  EXPECT_EQ(recompute.id, "activation recomp");
  EXPECT_EQ(recompute.time, 0.004);
  EXPECT_EQ(recompute.parameter_bytes, 2e6);
  EXPECT_EQ(recompute.in_flight_bytes, 4096);
  EXPECT_EQ(recompute.fixed_bytes, 6e6 + 0.5);
  EXPECT_THAT(recompute.forward_sync_bytes, ElementsAre(Pair(1, 4096)));
  EXPECT_THAT(recompute.backward_sync_bytes, ElementsAre(Pair(3, 4096)));
  EXPECT_EQ(PlainVariant(p.nodes[0]), &p.nodes[0].variants.at(1).at(0));
}

// Key by key what the file said.
TEST(PiperJson, WrittenInputsAreTheSame) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PiperProblem p, ParsePiper(PiperExample(), "a.json"));
  EXPECT_EQ(*ParseJson(PiperToJson(p), "written"), *ParseJson(PiperExample(), "a.json"));
}

TEST(PiperJson, BecomesAModel) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PiperProblem p, ParsePiper(PiperExample(), "a.json"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerList list, ToLayerList(p, "some", "a.json"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, MakeGraph(list, "a.json"));
  std::vector<std::string> names;
  for (const LayerSpec& layer : graph.layers) names.push_back(layer.name);
  EXPECT_THAT(names, ElementsAre("embed", "block#3", "block#5", "head", "loss"));
  EXPECT_EQ(graph.num_parameters(), 18000000 / 4);
  const LayerSpec& block = graph.layers[1];
  const LayerOperations ops = block.operations(3, TokenSlice());
  EXPECT_EQ(ops.forward[0].time, Milliseconds(6));
  EXPECT_EQ(ops.backward_input[0].time, Milliseconds(6));
  EXPECT_EQ(ops.backward_weight[0].time, Milliseconds(6));
  EXPECT_EQ(block.costs(1).kept, Bytes(65536));
  EXPECT_EQ(block.input_use, InputUse::kForward);           // they are part of what is kept
  EXPECT_EQ(graph.layers[0].costs(1).output, Bytes(8192));  // of its edges the larger
}

TEST(PiperJson, TheUnitOfTimesIsAnOption) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PiperProblem p,
                               ParsePiper(PiperExample(), "a.json", PiperTimeUnit::kMilliseconds));
  EXPECT_EQ(p.nodes[0].variants.at(1)[0].time, 0.006);  // as in the file
  EXPECT_EQ(p.Seconds(6), 0.006);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerList list, ToLayerList(p, "some", "a.json"));
  EXPECT_EQ(absl::get<PassCosts<Nanoseconds>>(list.layers[0].costs).forward.per_sample,
            Microseconds(2));
}

// Other files' variants have other ids.
TEST(PiperJson, ThePlainVariantIsVanillaOrTheFirst) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(PiperProblem p, ParsePiper(PiperExample(), "a.json"));
  PiperNode& node = p.nodes[0];
  std::swap(node.variants[1][0], node.variants[1][1]);
  EXPECT_EQ(PlainVariant(node), &node.variants[1][1]);
  node.variants[1][1].id = "plain";
  EXPECT_EQ(PlainVariant(node), &node.variants[1][0]);
  node.variants.erase(1);
  EXPECT_EQ(PlainVariant(node), nullptr);
  EXPECT_THAT(ToLayerList(p, "some", "a.json"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a.json: node 3 (\"block\") has no variant without tensor parallelism "
                       "(TMPCs.1)"));
}

// The example with one change, which must be refused with this message.
void PiperRefuses(const std::function<void(json&)>& change, const std::string& message) {
  json root = *ParseJson(PiperExample(), "example");
  change(root);
  EXPECT_THAT(ParsePiper(DumpJson(root), "a.json"),
              StatusIs(absl::StatusCode::kInvalidArgument, absl::StrCat("a.json: ", message)));
}

json& Variant(json& root) { return root["nodes"][0]["TMPCs"]["1"][0]; }

TEST(PiperJson, ANodeWithoutANameIsCalledByItsId) {
  json root = *ParseJson(PiperExample(), "example");
  root["nodes"][1].erase("name");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PiperProblem p, ParsePiper(DumpJson(root), "a.json"));
  EXPECT_EQ(p.nodes[1].name, "1");
}

TEST(PiperJson, ErrorsNameFileKeyAndReason) {
  PiperRefuses([](json& j) { j.erase("bandwidth"); }, "bandwidth: missing");
  PiperRefuses([](json& j) { j["bandwidth"] = 0; }, "bandwidth: must be above 0");
  PiperRefuses([](json& j) { j["maxDevices"] = 2.5; },
               "maxDevices: 2.5: must be a whole number from 1 to 1048576");
  PiperRefuses([](json& j) { j["maxDevices"] = 1048577; },
               "maxDevices: 1048577.0: must be a whole number from 1 to 1048576");
  PiperRefuses([](json& j) { j["mbsInBatch"] = 0; },
               "mbsInBatch: 0.0: must be a whole number from 1 to 1073741824");
  PiperRefuses([](json& j) { j["maxMemoryPerDevice"] = -1; },
               "maxMemoryPerDevice: -1.0: must be from 0 to 1e+15");
  PiperRefuses([](json& j) { j["nodes"] = json::array(); }, "nodes: there are none");
  PiperRefuses([](json& j) { j["nodes"][2]["id"] = 1; },
               "nodes[2].id: 1: another node has this id");
  PiperRefuses([](json& j) { j["nodes"][0]["TMPCs"]["1"].push_back(Variant(j)); },
               "nodes[0].TMPCs.1[2].id: \"vanilla\": another variant of the degree has this id");
  PiperRefuses(
      [](json& j) { j["nodes"][0]["TMPCs"]["1"].push_back(j["nodes"][0]["TMPCs"]["1"][1]); },
      "nodes[0].TMPCs.1[2].id: \"activation recomp\": another variant of the degree has this id");
  PiperRefuses([](json& j) { j["nodes"][0]["TMPCs"] = json::object(); },
               "nodes[0].TMPCs: there are no variants");
  PiperRefuses([](json& j) { j["nodes"][0]["TMPCs"]["1"] = json::array(); },
               "nodes[0].TMPCs.1: there are no variants");
  PiperRefuses([](json& j) { j["nodes"][0]["TMPCs"]["two"] = json::array(); },
               "nodes[0].TMPCs.two: must be a tensor-parallel degree, a whole number from 1");
  PiperRefuses([](json& j) { Variant(j).erase("timePerSample"); },
               "nodes[0].TMPCs.1[0].timePerSample: missing");
  PiperRefuses([](json& j) { Variant(j)["timePerSample"] = "1 s"; },
               "nodes[0].TMPCs.1[0].timePerSample: \"1 s\": must be a number");
  PiperRefuses([](json& j) { Variant(j)["memoryUsageA"] = -0.5; },
               "nodes[0].TMPCs.1[0].memoryUsageA: -0.5: must be from 0 to 1e+15");
}

TEST(PiperJson, EdgesMustFit) {
  PiperRefuses([](json& j) { Variant(j)["syncTimeFw"].erase("1"); },
               "nodes[0].TMPCs.1[0].syncTimeFw.1: missing");
  PiperRefuses([](json& j) { Variant(j)["syncTimeBw"]["5"] = 0; },
               "nodes[0].TMPCs.1[0].syncTimeBw.5: the node has no such edge");
  PiperRefuses([](json& j) { Variant(j)["syncTimeBw"]["9"] = 0; },
               "nodes[0].TMPCs.1[0].syncTimeBw.9: the node has no such edge");
  PiperRefuses([](json& j) { Variant(j)["syncTimeBw"]["07"] = 0; },
               "nodes[0].TMPCs.1[0].syncTimeBw.07: the node has no such edge");
  PiperRefuses([](json& j) { j["edges"][0]["sourceId"] = 2; },
               "edges[0].sourceId: 2: no node has this id");
  PiperRefuses([](json& j) { j["edges"][1] = j["edges"][0]; },
               "edges[1].sourceId: the edge from 1 to 3 is there twice");
  PiperRefuses(
      [](json& j) {
        j["edges"].push_back({{"sourceId", 7}, {"destId", 1}, {"communicationCost", 0}});
      },
      "edges: cyclic nodes: 3 -> 7 -> 1 -> 3");
  PiperRefuses([](json& j) { j["edges"][0].erase("communicationCost"); },
               "edges[0].communicationCost: missing");
}

}  // namespace
}  // namespace pipelab
