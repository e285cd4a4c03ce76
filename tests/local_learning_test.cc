// Pipelines whose stages learn locally (scheme local) train as the serial local-learning loop does:
// losses and parameters are the same bits, memory is as predicted, and no gradient is sent.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/serial_trainer.h"
#include "models/layers/test_layers.h"
#include "models/zoo/resnet.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kSteps = 3;

// Trains both ways, and compares.
void ExpectAsSerial(const ModelGraph& graph, const BatchSource& data,
                    const TrainingOptions& options) {
  SCOPED_TRACE(Describe(options));
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(graph, data, options));
  const Schedule& schedule = training->program().schedule;
  const int stages = schedule.num_stages();
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      auto serial, SerialTrainer::Create(training->graph(), backend.get(),
                                         SmallSerial(data, options.sizes.micro_batches)));
  const std::vector<double> losses = LossesAsPredicted(training.get(), kSteps);
  for (int step = 0; step < kSteps; ++step) EXPECT_EQ(losses[step], serial->Step().value());
  int values = 0;
  for (const LayerSpec& layer : training->graph().layers) {
    for (const ParameterSpec& p : layer.parameters) {
      EXPECT_EQ(training->ParameterValue(p.name).value(), serial->ParameterValue(p.name).value())
          << p.name;
      ++values;
    }
  }
  EXPECT_GT(values, stages);
  for (const Message& m : training->program().messages) EXPECT_FALSE(m.gradient);
  if (schedule.stages.IsChain()) {
    EXPECT_EQ(training->program().messages.size(),
              static_cast<size_t>((stages - 1) * schedule.num_micro_batches));
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
    ExpectAsSerial(graph, *data, SmallTraining("local", GetParam(), micro_batches));
  }
  TrainingOptions recompute = SmallTraining("local", GetParam(), 4);
  recompute.sizes.recompute = true;
  ExpectAsSerial(graph, *data, recompute);
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
    options.local_heads = head;
    ExpectAsSerial(model.graph, data, options);  // cut by flops, where all layers get a gradient
    // The stem and the first block, the second block and the classifier.
    for (int group : model.group_of_layer) options.stage_of_layer.push_back(group < 2 ? 0 : 1);
    ExpectAsSerial(model.graph, data, options);
  }
}

TEST(LocalLearning, RefusesInOneLine) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  const auto data = SmallText();
  TrainingOptions options = SmallTraining("local", 2, 4);
  options.local_heads = LocalHead::kConvolution;
  EXPECT_THAT(PipelineTraining::Create(graph, *data, options).status().message(),
              testing::HasSubstr("is of tokens, not of images; use linear"));
}

}  // namespace
}  // namespace pipelab
