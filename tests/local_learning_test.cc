// Pipelines whose stages learn locally (scheme local) train as the serial local-learning loop does:
// losses and parameters are the same bits, memory is as predicted, and no gradient is sent.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/layers/test_layers.h"
#include "models/zoo/resnet.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kLocalSteps = 3;

// Trains both ways, and compares; no gradient is sent.
void ExpectAsSerialLoop(const ModelGraph& graph, const BatchSource& data,
                        const TrainingOptions& options) {
  EXPECT_EQ(ExpectAsSerial(graph, data, options, kLocalSteps).size(), size_t{kLocalSteps});
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto training, PipelineTraining::Create(graph, data, options));
  const Schedule& schedule = training->program().schedule;
  const int stages = schedule.num_stages();
  for (const Message& m : training->program().messages) EXPECT_FALSE(m.gradient);
  if (schedule.stages.IsChain()) {
    const int sends = options.config.pipeline == 1 ? 0 : stages - 1;
    EXPECT_EQ(training->program().messages.size(),
              static_cast<size_t>(sends * schedule.num_micro_batches));
  }
  if (stages > 1) {
    EXPECT_GT(training->graph().layers.size(), graph.layers.size()) << "each stage has a loss";
  }
}

class LocalLearning : public testing::TestWithParam<int> {};

TEST_P(LocalLearning, TrainsAsTheSerialLoop) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  const auto data = SmallText();
  for (int micro_batches : {1, 2, 4, 8, 16}) {
    ExpectAsSerialLoop(graph, *data, SmallTraining("local", GetParam(), micro_batches));
  }
  TrainingOptions recompute = SmallTraining("local", GetParam(), 4);
  recompute.config.recompute = Recompute::kFull;
  ExpectAsSerialLoop(graph, *data, recompute);
}

// Steps in the order, and several stages per device: on one device the serial loop itself.
TEST_P(LocalLearning, WithoutAFlush) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  const auto data = SmallText();
  for (int every : {1, 4}) {
    TrainingOptions options = SmallTraining("local", GetParam(), 8);
    options.config.update_interval = every;
    options.config.virtual_stages = GetParam() == 8 ? 1 : 2;
    ExpectAsSerialLoop(graph, *data, options);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LocalLearning, testing::Values(1, 2, 3, 4, 8));

TEST(LocalLearning, OfImages) {
  ResNetConfig config;
  config.blocks = {1, 1};
  config.width = 4;
  config.classes = 5;
  config.height = config.image_width = 32;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel model, BuildResNet(config));
  const RandomData data(TestFieldsOf(model.graph));
  for (const LocalHead head : {LocalHead::kLinear, LocalHead::kConvolution}) {
    TrainingOptions options = SmallTraining("local", 2, 4);
    options.config.local_heads = head;
    ExpectAsSerialLoop(model.graph, data,
                       options);  // cut by flops, where all layers get a gradient
    // The stem and the first block, the second block and the classifier.
    std::vector<int> stage_of_layer;
    for (int group : model.group_of_layer) stage_of_layer.push_back(group < 2 ? 0 : 1);
    options.config.layout = StagesText(stage_of_layer);
    ExpectAsSerialLoop(model.graph, data, options);
  }
}

TEST(LocalLearning, RefusesInOneLine) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  const auto data = SmallText();
  TrainingOptions options = SmallTraining("local", 2, 4);
  options.config.local_heads = LocalHead::kConvolution;
  EXPECT_THAT(PipelineTraining::Create(graph, *data, options).status().message(),
              testing::HasSubstr("is of tokens, not of images; use linear"));
}

}  // namespace
}  // namespace pipelab
