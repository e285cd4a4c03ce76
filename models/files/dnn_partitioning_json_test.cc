#include "models/files/dnn_partitioning_json.h"

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

std::string PlacementExample() {
  for (const EmbeddedText& file : ExampleFiles()) {
    if (file.name == "placement") return std::string(file.text);
  }
  ADD_FAILURE() << "no example placement";
  return "";
}

TEST(PlacementJson, ReadsTheExample) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PlacementProblem p,
                               ParsePlacement(PlacementExample(), "a.json"));
  EXPECT_EQ(p.memory_bytes, 16e9);
  EXPECT_EQ(p.accelerators, 2);
  EXPECT_EQ(p.cpus, 1);
  ASSERT_EQ(p.nodes.size(), 5u);
  EXPECT_EQ(p.nodes[3].id, 6);
  EXPECT_EQ(p.nodes[3].name, "a grad");
  EXPECT_FALSE(p.nodes[3].on_accelerator);
  EXPECT_TRUE(p.nodes[3].is_backward && p.nodes[2].is_backward && !p.nodes[0].is_backward);
  EXPECT_EQ(p.nodes[3].accelerator_ms, 1.25);
  EXPECT_EQ(p.nodes[3].cpu_ms, 12.5);
  EXPECT_EQ(p.nodes[3].color_class, 1);
  EXPECT_EQ(p.nodes[3].bytes, 1024);
  EXPECT_FALSE(p.nodes[4].color_class.has_value());
  ASSERT_EQ(p.edges.size(), 4u);
  EXPECT_EQ(p.edges[2].from, 2);
  EXPECT_EQ(p.edges[2].to, 3);
  EXPECT_EQ(p.edges[2].ms, 0.001);
  EXPECT_EQ(p.edges[2].bytes, 4096.0);
  EXPECT_FALSE(p.edges[3].bytes.has_value());
}

// Key by key what the file said, but for 1 and true.
TEST(PlacementJson, WrittenInputsAreTheSame) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PlacementProblem p,
                               ParsePlacement(PlacementExample(), "a.json"));
  json root = *ParseJson(PlacementExample(), "a.json");
  for (json& node : root["nodes"]) {
    for (const char* key : {"supportedOnFpga", "isBackwardNode"}) {
      if (node[key].is_number()) node[key] = node[key] == 1;
    }
  }
  EXPECT_EQ(*ParseJson(PlacementToJson(p), "written"), root);
}

// The example with one change, which must be refused with this message.
void PlacementRefuses(const std::function<void(json&)>& change, const std::string& message) {
  json root = *ParseJson(PlacementExample(), "example");
  change(root);
  EXPECT_THAT(ParsePlacement(DumpJson(root), "a.json"),
              StatusIs(absl::StatusCode::kInvalidArgument, absl::StrCat("a.json: ", message)));
}

TEST(PlacementJson, ErrorsNameFileKeyAndReason) {
  PlacementRefuses([](json& j) { j.erase("maxFPGAs"); }, "maxFPGAs: missing");
  PlacementRefuses([](json& j) { j["maxCPUs"] = -1; },
                   "maxCPUs: -1: must be a whole number from 0 to 1073741824");
  PlacementRefuses([](json& j) { j["nodes"].clear(); }, "nodes: there are none");
  PlacementRefuses([](json& j) { j["nodes"][1]["id"] = 4; },
                   "nodes[1].id: 4: another node has this id");
  PlacementRefuses([](json& j) { j["nodes"][1]["isBackwardNode"] = 2; },
                   "nodes[1].isBackwardNode: must be true or false, or 1 or 0");
  PlacementRefuses([](json& j) { j["nodes"][1].erase("isBackwardNode"); },
                   "nodes[1].isBackwardNode: missing");
  PlacementRefuses([](json& j) { j["nodes"][1]["fpgaLatency"] = -2; },
                   "nodes[1].fpgaLatency: -2.0: must be from 0 to 1e+15");
  PlacementRefuses([](json& j) { j["nodes"][1]["colorClass"] = "red"; },
                   "nodes[1].colorClass: \"red\": must be a whole number from -9007199254740992 to "
                   "9007199254740992");
  PlacementRefuses([](json& j) { j["edges"][1]["destId"] = 3; },
                   "edges[1].destId: 3: no node has this id");
  PlacementRefuses([](json& j) { j["edges"][1].erase("cost"); }, "edges[1].cost: missing");
  PlacementRefuses([](json& j) { j["edges"][1]["destId"] = 4; },
                   "edges: cyclic nodes: 4 -> 2 -> 4");
}

}  // namespace
}  // namespace pipelab
