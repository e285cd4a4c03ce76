// Serial training of networks whose blocks learn locally: each block learns as if the network ended
// with it, and nothing of the blocks behind it reaches it.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/serial_trainer.h"
#include "models/layers/test_layers.h"
#include "models/zoo/image_builder.h"
#include "models/zoo/local_heads.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

// Two convolutions, a residual block and a classifier, on 8 x 8 pictures.
ModelGraph SmallImageNet() {
  ImageBuilder b("small");
  ImageAt x = b.Conv("stem", b.Data(8, 8, 1), ConvOf(6, 3, 1, /*relu=*/false));
  const ImageAt in = b.Relu("stem/relu", x);
  x = b.Conv("block1/conv1", in, ConvOf(6, 3, 1, /*relu=*/false));
  x = b.Conv("block1/conv2", x, ConvOf(6, 3, 1, /*relu=*/true));
  x = b.Relu("block1/relu", b.Add("block1/add", {x, in}));
  b.NextGroup();
  const ImageAt on = x;
  x = b.Conv("block2/conv1", on, ConvOf(6, 3, 1, /*relu=*/false));
  x = b.Relu("block2/relu", b.Add("block2/add", {x, on}));
  b.Classify("classifier", b.GlobalAverage("pool", x), 5);
  return b.Finish()->graph;
}

struct LocalCase {
  ModelGraph graph;
  std::vector<int> cuts;
  LocalHead kind;
};

std::vector<LocalCase> LocalCases() {
  return {{SmallImageNet(), {6}, LocalHead::kLinear},
          {SmallImageNet(), {6}, LocalHead::kConvolution},
          {SmallImageNet(), {2, 6}, LocalHead::kConvolution},
          {*BuildGpt(SmallGpt(0.1, /*tied=*/false)), {3}, LocalHead::kLinear}};
}

// The layers up to the loss of a block.
ModelGraph UpToLoss(const LocalModel& local, int block) {
  ModelGraph graph = local.graph;
  graph.layers.resize(local.losses[block] + 1);
  return graph;
}

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> values;
};

Trained Train(const ModelGraph& graph) {
  const RandomData data(TestFieldsOf(graph));
  Arena arena;
  const auto backend = MakeCpuBackend(&arena);
  SerialOptions options;
  options.micro_batch_size = 2;
  options.num_micro_batches = 3;
  options.data = &data;
  options.seed = 3;
  options.optimizer.adam.learning_rate = 0.01f;
  auto trainer = SerialTrainer::Create(graph, backend.get(), options);
  EXPECT_THAT(trainer, IsOk());
  Trained trained;
  for (int step = 0; step < 4; ++step) trained.losses.push_back((*trainer)->Step().value());
  for (const LayerSpec& layer : graph.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      trained.values[p.name] = (*trainer)->ParameterValue(p.name).value();
    }
  }
  return trained;
}

TEST(LocalLearning, ABlockLearnsAsIfTheNetworkEndedThere) {
  for (const LocalCase& c : LocalCases()) {
    SCOPED_TRACE(c.graph.name);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const LocalModel local, WithLocalHeads(c.graph, c.cuts, c.kind));
    ASSERT_EQ(local.losses.size(), c.cuts.size() + 1);
    const Trained whole = Train(local.graph);
    for (size_t block = 0; block + 1 < local.losses.size(); ++block) {
      const Trained part = Train(UpToLoss(local, static_cast<int>(block)));
      for (const auto& [name, values] : part.values)
        EXPECT_EQ(whole.values.at(name), values) << name;
      EXPECT_NE(part.losses, whole.losses) << "a step's loss is that of the last block";
    }
    EXPECT_NE(whole.losses.front(), whole.losses.back());
  }
}

// With the cuts, the blocks before the last learn something else than from end to end.
TEST(LocalLearning, CutsChangeWhatIsLearned) {
  for (const LocalCase& c : LocalCases()) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const LocalModel local, WithLocalHeads(c.graph, c.cuts, c.kind));
    const Trained cut = Train(local.graph), whole = Train(c.graph);
    EXPECT_EQ(cut.losses.front(), whole.losses.front()) << "the forward is the same";
    EXPECT_NE(cut.losses.back(), whole.losses.back());
  }
}

TEST(LocalLearning, JudgesByTheExitThatIsAskedFor) {
  const ModelGraph graph = SmallImageNet();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const LocalModel local,
                               WithLocalHeads(graph, {6}, LocalHead::kLinear));
  const RandomData data(TestFieldsOf(graph));
  Arena arena;
  const auto backend = MakeCpuBackend(&arena);
  SerialOptions options;
  options.micro_batch_size = options.num_micro_batches = 2;
  options.data = &data;
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto all,
                               SerialTrainer::Create(local.graph, backend.get(), options));
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto first,
                               SerialTrainer::Create(UpToLoss(local, 0), backend.get(), options));
  std::vector<float> of_exit, alone;
  all->JudgeBy(local.losses[0]);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const double loss, all->Evaluate(data, 1, 0, 4, &of_exit));
  EXPECT_EQ(loss, first->Evaluate(data, 1, 0, 4, &alone).value());
  EXPECT_EQ(of_exit, alone);
  EXPECT_FALSE(alone.empty());
}

TEST(LocalHeads, GoBehindTheLastLayerOfABlock) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const LocalModel local,
                               WithLocalHeads(SmallImageNet(), {6}, LocalHead::kConvolution));
  std::vector<std::string> names;
  for (int i = 6; i <= local.losses[0]; ++i) names.push_back(local.graph.layers[i].name);
  EXPECT_THAT(names, testing::ElementsAre("exit0/conv", "exit0/relu", "exit0/mean", "exit0/dense",
                                          "exit0/classifier"));
  // Both that take the first block's output are detached from it, and keep their other inputs.
  const LayerSpec& conv = local.graph.layers[local.losses[0] + 1];
  EXPECT_EQ(conv.name, "block2/conv1");
  EXPECT_EQ(conv.inputs, conv.detached);
  const LayerSpec& add = local.graph.layers[local.losses[0] + 2];
  EXPECT_EQ(add.inputs.size(), 2u);
  EXPECT_EQ(add.detached, std::vector<int>{5});
}

TEST(LocalHeads, RefuseInOneLine) {
  const auto refusal = [](const std::vector<int>& cuts, LocalHead kind, const ModelGraph& graph) {
    return std::string(WithLocalHeads(graph, cuts, kind).status().message());
  };
  const ModelGraph gpt = *BuildGpt(SmallGpt(0, /*tied=*/false));
  EXPECT_THAT(refusal({0}, LocalHead::kLinear, SmallImageNet()),
              HasSubstr("a cut before layer 0: cuts ascend, from 1 to 10"));
  EXPECT_THAT(refusal({6, 6}, LocalHead::kLinear, SmallImageNet()), HasSubstr("cuts ascend"));
  // The head is on the second of two branches that meet behind the cut.
  ImageBuilder b("branches");
  const ImageAt x = b.Conv("stem", b.Data(8, 8, 1), ConvOf(6, 3, 1, /*relu=*/false));
  const ImageAt left = b.Conv("left", x, ConvOf(6, 3, 1, /*relu=*/true));
  const ImageAt right = b.Conv("right", x, ConvOf(6, 3, 1, /*relu=*/true));
  b.Classify("classifier", b.GlobalAverage("pool", b.Concat("both", {left, right})), 5);
  EXPECT_THAT(refusal({3}, LocalHead::kLinear, b.Finish()->graph),
              HasSubstr("layer \"left\": gets no gradient"));
  EXPECT_THAT(refusal({3}, LocalHead::kConvolution, gpt),
              HasSubstr("--local_heads=convolution: the model"));
  EXPECT_THAT(FindLocalHead("lineer").status().message(), HasSubstr("linear"));
}

}  // namespace
}  // namespace pipelab
