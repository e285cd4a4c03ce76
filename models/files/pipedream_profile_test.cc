#include "models/files/pipedream_profile.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/files/example_files.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;

std::string ProfileExample() {
  for (const EmbeddedText& file : ExampleFiles()) {
    if (file.name == "pipedream.graph") return std::string(file.text);
  }
  ADD_FAILURE() << "no example pipedream";
  return "";
}

std::vector<std::string> IdsOf(const PipeDreamProfile& profile) {
  std::vector<std::string> ids;
  for (const PipeDreamNode& node : profile.nodes) ids.push_back(node.id);
  return ids;
}

std::vector<std::string> EdgesOf(const PipeDreamProfile& profile) {
  std::vector<std::string> edges;
  for (const PipeDreamEdge& e : profile.edges) {
    edges.push_back(absl::StrCat(profile.nodes[e.from].id, "-", profile.nodes[e.to].id));
  }
  return edges;
}

TEST(PipeDreamProfile, ReadsTheExample) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PipeDreamProfile p,
                               ParsePipeDreamProfile(ProfileExample(), "a.txt"));
  EXPECT_THAT(IdsOf(p), ElementsAre("node1", "node4", "node7", "node5", "node8", "node9", "node10",
                                    "node11"));
  EXPECT_THAT(EdgesOf(p),
              ElementsAre("node1-node4", "node4-node5", "node5-node7", "node7-node8", "node7-node9",
                          "node8-node10", "node5-node10", "node10-node11"));
  const PipeDreamNode& lstm = p.nodes[2];
  EXPECT_EQ(lstm.description, "LSTM(512, 512)");
  EXPECT_EQ(lstm.forward_ms, 3.19);
  EXPECT_EQ(lstm.backward_ms, 5.348);
  EXPECT_THAT(lstm.activation_bytes, ElementsAre(3145728, 65536, 65536));
  EXPECT_EQ(lstm.TotalActivationBytes(), 3276800);
  EXPECT_EQ(lstm.parameter_bytes, 8404992);
  EXPECT_FALSE(lstm.stage.has_value());
}

TEST(PipeDreamProfile, InputsAndUnusedItemsAreDropped) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PipeDreamProfile p,
                               ParsePipeDreamProfile(ProfileExample(), "a.txt"));
  const PipeDreamProfile rest = WithoutInputs(p);
  EXPECT_THAT(IdsOf(rest), ElementsAre("node4", "node7", "node5", "node8", "node10", "node11"));
  EXPECT_THAT(EdgesOf(rest), ElementsAre("node4-node5", "node5-node7", "node7-node8",
                                         "node8-node10", "node5-node10", "node10-node11"));
}

// An input with inputs of its own is a layer, and so is an item that somebody takes.
TEST(PipeDreamProfile, OnlySourcesAndSinksAreDropped) {
  constexpr char kCosts[] =
      " -- forward_compute_time=0, backward_compute_time=0, activation_size=0, parameter_size=0\n";
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const PipeDreamProfile p,
      ParsePipeDreamProfile(
          absl::StrCat("a -- Conv", kCosts, "b -- InputNorm", kCosts, "c -- __getitem__(0)", kCosts,
                       "d -- __getitem__(1)", kCosts, "\ta -- b\n\tb -- c\n\tc -- d\n"),
          "a.txt"));
  EXPECT_THAT(IdsOf(WithoutInputs(p)), ElementsAre("a", "b", "c"));
}

TEST(PipeDreamProfile, WrittenProfilesAreReadBack) {
  std::string text = absl::StrReplaceAll(
      ProfileExample(),
      {{"parameter_size=65664000.000", "parameter_size=65664000.125 -- stage_id=3"},
       {"Dropout(p=0.2)", "Dropout -- of -- 0.2"},
       {"activation_size=196608000.0", "activation_size=[196608000.0]"}});
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PipeDreamProfile p, ParsePipeDreamProfile(text, "a.txt"));
  EXPECT_EQ(p.nodes[3].description, "Dropout -- of -- 0.2");
  EXPECT_EQ(p.nodes[7].stage, 3);
  const std::string written = PipeDreamProfileToText(p);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PipeDreamProfile again,
                               ParsePipeDreamProfile(written, "again"));
  EXPECT_EQ(PipeDreamProfileToText(again), written);
  EXPECT_EQ(EdgesOf(again), EdgesOf(p));
  ASSERT_EQ(again.nodes.size(), p.nodes.size());
  for (size_t i = 0; i < p.nodes.size(); ++i) {
    EXPECT_EQ(again.nodes[i].id, p.nodes[i].id);
    EXPECT_EQ(again.nodes[i].description, p.nodes[i].description);
    EXPECT_EQ(again.nodes[i].forward_ms, p.nodes[i].forward_ms);
    EXPECT_EQ(again.nodes[i].backward_ms, p.nodes[i].backward_ms);
    EXPECT_EQ(again.nodes[i].activation_bytes, p.nodes[i].activation_bytes);
    EXPECT_EQ(again.nodes[i].parameter_bytes, p.nodes[i].parameter_bytes);
    EXPECT_EQ(again.nodes[i].stage, p.nodes[i].stage);
  }
}

TEST(PipeDreamProfile, BecomesAModel) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PipeDreamProfile p,
                               ParsePipeDreamProfile(ProfileExample(), "a.txt"));
  const LayerList list = ToLayerList(WithoutInputs(p), "gnmt");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, MakeGraph(list, "a.txt"));
  std::vector<std::string> names;
  for (const LayerSpec& layer : graph.layers) names.push_back(layer.name);
  EXPECT_THAT(names, ElementsAre("node4 Embedding", "node5 Dropout", "node7 LSTM",
                                 "node8 __getitem__", "node10 Add", "node11 Classifier", "loss"));
  EXPECT_THAT(graph.layers[4].inputs, ElementsAre(3, 1));
  EXPECT_EQ(graph.num_parameters(), (65536000 + 8404992 + 65664000) / 4);
  const LayerOperations lstm = graph.layers[2].operations(2, TokenSlice());
  EXPECT_EQ(lstm.forward[0].time, Microseconds(6380));
  EXPECT_EQ(lstm.backward_input[0].time + lstm.backward_weight[0].time, Microseconds(10696));
  EXPECT_EQ(lstm.backward_input[0].time, lstm.backward_weight[0].time);
  const LayerOperations dropout = graph.layers[1].operations(2, TokenSlice());
  EXPECT_EQ(dropout.backward_input[0].time, Microseconds(392));
  EXPECT_TRUE(dropout.backward_weight.empty());
  EXPECT_EQ(graph.layers[2].costs(1).output, Bytes(3276800));
}

// The example with one change, which must be refused with this message.
void ProfileRefuses(const std::string& old_text, const std::string& new_text,
                    const std::string& message) {
  const std::string text = absl::StrReplaceAll(ProfileExample(), {{old_text, new_text}});
  ASSERT_NE(text, ProfileExample()) << old_text;
  const absl::StatusOr<PipeDreamProfile> p = ParsePipeDreamProfile(text, "a.txt");
  ASSERT_FALSE(p.ok()) << message;
  EXPECT_EQ(p.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(p.status().message()), message);
}

TEST(PipeDreamProfile, ErrorsNameFileLineAndReason) {
  const auto number = [](const std::string& field) {
    return absl::StrCat("a.txt:3: ", field, ": must be a number from 0 to 1e+15");
  };
  ProfileRefuses("=3.190", "=fast", number("forward_compute_time=fast"));
  ProfileRefuses("=5.348", "=-5.348", number("backward_compute_time=-5.348"));
  ProfileRefuses("=8404992.000", "=nan", number("parameter_size=nan"));
  ProfileRefuses("[3145728.0; 65536.0;", "[3145728.0; ;", number("activation_size="));
  ProfileRefuses("65536.0]", "65536.0",
                 "a.txt:3: activation_size=[3145728.0; 65536.0; 65536.0: the list has no end");
  ProfileRefuses("backward_compute_time=5.348, ", "", "a.txt:3: backward_compute_time: missing");
  ProfileRefuses(
      "forward_compute_time=3.190", "time=3.190",
      "a.txt:3: \"time\" is unknown; a node has forward_compute_time, backward_compute_time, "
      "activation_size, parameter_size");
  ProfileRefuses("backward_compute_time=5.348", "forward_compute_time=5.348",
                 "a.txt:3: forward_compute_time: is there twice");
  ProfileRefuses("8404992.000", "8404992.000 -- stage_id=x",
                 "a.txt:3: stage_id=x: must be a number from 0");
  ProfileRefuses("node5 -- Dropout", "node4 -- Dropout", "a.txt:4: node \"node4\" is there twice");
  ProfileRefuses("node5 -- Dropout", "node 5 -- Dropout",
                 "a.txt:4: \"node 5\": an id must be one word");
  ProfileRefuses("node10 -- Add -- ", "node10 -- ",
                 "a.txt:7: a node must be \"ID -- DESCRIPTION -- forward_compute_time=...\"");
  ProfileRefuses("\tnode4 -- node5", "\tnode4 -- node6",
                 "a.txt:10: the edge's node \"node6\" does not exist");
  ProfileRefuses("\tnode4 -- node5", "\tnode4", "a.txt:10: an edge must be \"<tab>ID -- ID\"");
  ProfileRefuses("\tnode4 -- node5", "\tnode1 -- node4",
                 "a.txt:10: the edge node1 -- node4 is there twice");
  ProfileRefuses("\tnode4 -- node5", "\tnode4 -- node5\n\tnode10 -- node5",
                 "a.txt: cyclic nodes: node7 -> node8 -> node10 -> node5 -> node7");
  EXPECT_EQ(std::string(ParsePipeDreamProfile("\n", "a.txt").status().message()),
            "a.txt: no nodes: not a PipeDream profile");
}

}  // namespace
}  // namespace pipelab
