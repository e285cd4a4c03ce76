// Vocabulary parallelism that trains: a GPT whose embedding and head are divided among all devices
// has, under 1F1B, V-Half and interlaced, with passes S and T, the bits of the serial loop over the same layers,
// in memory and traffic as predicted to the byte; one part has the losses of the whole model.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/zoo/vocabulary_shards.h"
#include "pipelines/runtime/training.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kSteps = 20;

// The stages of a chain for the layers of a SmallGpt.
std::vector<int> ChainOf(size_t layers, int stages) {
  std::vector<int> stage_of_layer;
  for (size_t i = 0; i < layers; ++i) {
    stage_of_layer.push_back(static_cast<int>(i * stages / layers));
  }
  return stage_of_layer;
}

struct Case {
  const char* scheme;
  int devices, micro_batches, barriers;
  bool tied;
};

class Vocabulary : public testing::TestWithParam<Case> {};

TEST_P(Vocabulary, TrainsAsSerial) {
  const Case& c = GetParam();
  const ModelGraph whole = SmallGpt(c.tied);
  const std::unique_ptr<BatchSource> batches = SmallText();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ShardedVocabulary sharded,
                               ShardVocabulary(whole, c.devices, c.barriers));
  const bool v = c.scheme == std::string("vocab_v_half");
  TrainingOptions options = SmallTraining(c.scheme, c.devices, c.micro_batches);
  options.stage_of_layer =
      sharded.StageOfLayer(ChainOf(whole.layers.size(), c.devices * (v ? 2 : 1)));
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto training,
                               PipelineTraining::Create(sharded.graph, *batches, options));
  SerialOptions serial = SmallSerial(*batches, c.micro_batches);
  serial.stage_of_layer = options.stage_of_layer;  // a stage's own gradients are summed first
  const std::vector<double> losses = LossesAsPredicted(training.get(), kSteps);
  EXPECT_EQ(losses, SerialLosses(sharded.graph, serial, kSteps));
  EXPECT_LT(losses.back(), 0.95 * losses.front());
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Vocabulary,
    testing::Values(Case{"vocab_1f1b", 1, 2, 2, false}, Case{"vocab_1f1b", 2, 4, 2, false},
                    Case{"vocab_1f1b", 2, 4, 1, false}, Case{"vocab_1f1b", 4, 8, 2, true},
                    Case{"vocab_1f1b", 4, 8, 1, true}, Case{"vocab_1f1b", 3, 2, 2, false},
                    Case{"vocab_1f1b", 8, 16, 1, false}, Case{"vocab_interlaced", 2, 4, 2, false},
                    Case{"vocab_interlaced", 3, 7, 1, false},
                    Case{"vocab_interlaced", 4, 8, 2, true}, Case{"vocab_v_half", 2, 4, 2, false},
                    Case{"vocab_v_half", 4, 8, 1, true}, Case{"vocab_v_half", 4, 6, 2, false}),
    [](const auto& info) {
      const Case& c = info.param;
      return c.scheme + std::to_string(c.devices) + "_" + std::to_string(c.micro_batches) + "_" +
             std::to_string(c.barriers) + (c.tied ? "_tied" : "");
    });

// One part is the whole model, from the same start: only the loss is summed elsewhere.
TEST(VocabularyOfOnePart, HasTheWholeModelsLosses) {
  const ModelGraph whole = SmallGpt(/*tied=*/false);
  const std::unique_ptr<BatchSource> batches = SmallText();
  for (int barriers : {1, 2}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(ShardedVocabulary sharded, ShardVocabulary(whole, 1, barriers));
    for (LayerSpec& layer : sharded.graph.layers) {
      for (ParameterSpec& p : layer.parameters) {  // the streams that they start from
        const size_t part = p.name.find(".0/");
        if (part != std::string::npos) p.name.erase(part, 2);
      }
    }
    const SerialOptions serial = SmallSerial(*batches, /*micro_batches=*/4);
    ExpectWithinTolerance(SerialLosses(sharded.graph, serial, kSteps), SmallTraining("1f1b", 1, 4),
                          SerialLosses(whole, serial, kSteps));
  }
}

}  // namespace
}  // namespace pipelab
