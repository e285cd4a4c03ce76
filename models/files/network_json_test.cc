#include "models/files/network_json.h"

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/files/model_file.h"
#include "tools/base/json.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Two branches of a table, joined.
constexpr char kTable[] = R"({"name": "net", "layers": [
  {"name": "in", "kind": "data_input", "field": "features", "shape": [8]},
  {"name": "wide", "kind": "dense", "out": 16, "activation": "relu"},
  {"name": "deep", "kind": "dense", "inputs": ["in"], "out": 4, "activation": "gelu"},
  {"name": "deeper", "kind": "norm"},
  {"name": "join", "kind": "concat", "inputs": ["wide", "deeper"]},
  {"name": "out", "kind": "dense", "out": 2},
  {"name": "loss", "kind": "element_loss", "loss": "squared_error"}]})";

constexpr char kImages[] = R"({"name": "cnn", "layers": [
  {"name": "conv1", "kind": "image_conv", "shape": [28, 28, 1], "out": 8, "norm": true},
  {"name": "pool", "kind": "pool", "pool": "max"},
  {"name": "conv2", "kind": "image_conv", "kernel": 1, "out": 8},
  {"name": "sum", "kind": "add", "inputs": ["pool", "conv2"]},
  {"name": "relu", "kind": "relu"},
  {"name": "conv3", "kind": "image_conv", "stride": 2, "relu": false, "out": 16},
  {"name": "mean", "kind": "pool", "pool": "global"},
  {"name": "head", "kind": "classifier", "classes": 10}]})";

constexpr char kText[] = R"({"name": "lm", "layers": [
  {"name": "embedding", "kind": "gpt_embedding", "tokens": 16, "hidden": 32, "vocabulary": 96},
  {"name": "attention", "kind": "gpt_attention", "heads": 4, "dropout": 0.1},
  {"name": "mlp", "kind": "gpt_mlp"},
  {"name": "head", "kind": "gpt_head", "vocabulary": 96}]})";

TEST(NetworkJson, ShapesFollowFromTheInputs) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph net, ParseNetwork(kTable, "net.json"));
  EXPECT_EQ(net.name, "net");
  EXPECT_THAT(net.layers[0].output_shape, ElementsAre(1, 8));
  EXPECT_THAT(net.layers[2].inputs, ElementsAre(0));
  EXPECT_THAT(net.layers[4].output_shape, ElementsAre(1, 20));
  EXPECT_THAT(net.layers[4].inputs, ElementsAre(1, 3));
  EXPECT_EQ(net.num_parameters(), 9 * 16 + 9 * 4 + 8 + 21 * 2);
  EXPECT_EQ(net.layers[6].data[0].shape, std::vector<int64_t>{2});

  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph cnn, ParseNetwork(kImages, "cnn.json"));
  EXPECT_THAT(cnn.layers[0].output_shape, ElementsAre(28 * 28, 8));
  EXPECT_THAT(cnn.layers[1].output_shape, ElementsAre(14 * 14, 8));
  EXPECT_THAT(cnn.layers[5].output_shape, ElementsAre(7 * 7, 16));
  EXPECT_THAT(cnn.layers[6].output_shape, ElementsAre(1, 16));
  EXPECT_EQ(cnn.layers[7].data[0].limit, 10);

  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph lm, ParseNetwork(kText, "lm.json"));
  EXPECT_EQ(lm.layers[2].attributes.at("inner"), 128);
  EXPECT_EQ(LossLayer(lm), 3);
  EXPECT_GT(lm.layers[1].costs(2).forward, Flops(0));

  json root = *ParseJson(kText, "m");
  root["layers"][1]["window"] = 5;
  root["layers"][1]["key_tile"] = 7;
  root["layers"][2] = {{"name", "experts"}, {"kind", "gpt_experts"}, {"experts", 8}, {"chosen", 3},
                       {"nodes", 4},        {"most_nodes", 2}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph sparse, ParseNetwork(DumpJson(root), "lm.json"));
  EXPECT_EQ(sparse.layers[1].attributes.at("window"), 5);
  EXPECT_EQ(sparse.layers[1].attributes.at("key_tile"), 7);
  EXPECT_EQ(sparse.layers[2].attributes.at("nodes"), 4);
  EXPECT_EQ(sparse.layers[2].attributes.at("most_nodes"), 2);
}

TEST(NetworkJson, IsAModelFile) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph net, ParseModel(kTable, "net.json", "file"));
  EXPECT_EQ(net.layers[1].kind, "dense");
  EXPECT_THAT(std::string(ParseModelAsList(kTable, "net.json", "file").status().message()),
              StartsWith("net.json: a network of layers that run"));
}

void NetworkRefuses(const char* model, const std::function<void(json&)>& change,
                    const std::string& message) {
  json root = *ParseJson(model, "m");
  change(root["layers"]);
  const absl::StatusOr<ModelGraph> graph = ParseNetwork(DumpJson(root), "a.json");
  ASSERT_FALSE(graph.ok()) << message;
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(graph.status().message()), absl::StrCat("a.json: ", message));
}

TEST(NetworkJson, ErrorsNameFilePlaceAndReason) {
  NetworkRefuses(
      kTable, [](json& j) { j[1]["kind"] = "linear"; },
      absl::StrCat(
          "layers[1].kind: \"linear\" is unknown; there are ",
          "add, classifier, concat, data_input, dense, element_loss, embedding_bag, "
          "gpt_attention, gpt_embedding, gpt_experts, gpt_head, gpt_mlp, image_conv, norm, "
          "patch_embedding, pool, relu"));
  NetworkRefuses(
      kTable, [](json& j) { j[1].erase("out"); }, "layers[1].out: missing");
  NetworkRefuses(
      kTable, [](json& j) { j[1]["units"] = 3; },
      "layers[1].units: unknown; a dense knows name, kind, inputs, out, activation");
  NetworkRefuses(
      kTable, [](json& j) { j[1]["activation"] = "tanh"; },
      "layers[1].activation: \"tanh\" is unknown; there are none, gelu, relu");
  NetworkRefuses(
      kTable, [](json& j) { j[2]["inputs"] = {"out"}; },
      "layers[2].inputs: \"out\": no earlier layer has this name");
  NetworkRefuses(
      kTable, [](json& j) { j[2]["name"] = "in"; }, "layers[2].name: \"in\" is there twice");
  NetworkRefuses(
      kTable, [](json& j) { j[4].erase("inputs"); },
      "layers[4].inputs: 1 layers; a concat takes 2 to 64");
  NetworkRefuses(
      kTable,
      [](json& j) {
        j[0]["shape"] = {8, 0};
      },
      "layers[0].shape: must be one to three whole numbers from 1, such as [28, 28, 1]");
  NetworkRefuses(
      kImages,
      [](json& j) {
        j[3]["inputs"] = {"conv1", "conv2"};
      },
      "layers[3].inputs: layer \"conv2\" gives [196, 8]; layer \"conv1\" gives [784, 8], and "
      "a sum's inputs must have one shape");
  NetworkRefuses(
      kTable,
      [](json& j) {
        j[3] = {{"name", "p"}, {"kind", "pool"}, {"pool", "max"}};
      },
      "layers[3].inputs: layer \"deep\" gives [1, 4]; a pool takes the pixels of an image");
  NetworkRefuses(
      kImages, [](json& j) { j[2]["kernel"] = 2; }, "layers[2].kernel: must be odd");
  NetworkRefuses(
      kText, [](json& j) { j[1]["heads"] = 5; },
      "layers[1].heads: 5: must divide the 32 numbers of a row");
  NetworkRefuses(
      kText,
      [](json& j) {
        j[1]["window"] = 3;
        j[1]["causal"] = false;
      },
      "layers[1].window: 3: causal attention has windows");
  NetworkRefuses(
      kText,
      [](json& j) {
        j[2] = {{"name", "experts"}, {"kind", "gpt_experts"}, {"experts", 8}, {"chosen", 3},
                {"nodes", 4},        {"most_nodes", 1}};
      },
      "layers[2].nodes: 4: must be at most 64 and divide the 8 experts, and 1 of them (most_nodes) "
      "must have 3");
  NetworkRefuses(
      kText, [](json& j) { j[1]["dropout"] = 1; },
      "layers[1].dropout: 1: must be at least 0 and below 1");
  NetworkRefuses(
      kTable,
      [](json& j) {
        j.push_back({{"name", "b"}, {"kind", "norm"}});
      },
      "layers[7].inputs: layer \"loss\" is a loss and gives nothing");
}

TEST(NetworkJson, WhatIsNoNetworkAsAWholeIsSaid) {
  json root = *ParseJson(kTable, "m");
  root["layers"].erase(6);
  EXPECT_THAT(std::string(ParseNetwork(DumpJson(root), "a.json").status().message()),
              HasSubstr("a.json: "));
  EXPECT_THAT(std::string(ParseNetwork(R"({"name": "m", "layers": []})", "a").status().message()),
              HasSubstr("no layers"));
}

}  // namespace
}  // namespace pipelab
