// Vocabulary parallelism that trains: a GPT whose embedding and head a configuration divides among
// all devices has, under 1F1B, V-Half and interlaced, with passes S and T, the bits of the serial
// loop over the same layers, in memory and traffic as predicted to the byte; one part has the
// losses of the whole model.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "models/zoo/vocabulary_shards.h"
#include "pipelines/runtime/training.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kVocabularySteps = 20;

struct VocabularyCase {
  const char* scheme;
  int devices, micro_batches, barriers;
  bool tied;
  const char* recompute = "none";
};

class Vocabulary : public testing::TestWithParam<VocabularyCase> {};

TEST_P(Vocabulary, TrainsAsSerial) {
  const VocabularyCase& c = GetParam();
  const ModelGraph whole = SmallGpt(c.tied);
  const std::unique_ptr<BatchSource> batches = SmallText();
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const StepConfig config,
      ParseStepConfig("config", absl::StrCat(c.scheme, ":P=", c.devices, ",M=", c.micro_batches,
                                             ",cut=layers,recompute=", c.recompute,
                                             ",vocabulary_barriers=", c.barriers)));
  TrainingOptions options = SmallTraining(c.scheme, c.devices, c.micro_batches);
  options.config = config;
  options.config.micro_batch_size = kSmallSamples;
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(whole, *batches, options));
  SerialOptions serial = SmallSerial(*batches, c.micro_batches);
  // A stage's own gradients are summed first.
  serial.stage_of_layer = training->partition().stage_of_layer;
  const std::vector<double> losses = LossesAsPredicted(training.get(), kVocabularySteps);
  EXPECT_EQ(losses, SerialLosses(training->graph(), serial, kVocabularySteps));
  EXPECT_LT(losses.back(), 0.95 * losses.front());
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Vocabulary,
    testing::Values(
        VocabularyCase{"vocab_1f1b", 1, 2, 2, false}, VocabularyCase{"vocab_1f1b", 2, 4, 2, false},
        VocabularyCase{"vocab_1f1b", 2, 4, 1, false}, VocabularyCase{"vocab_1f1b", 4, 8, 2, true},
        VocabularyCase{"vocab_1f1b", 4, 8, 1, true}, VocabularyCase{"vocab_1f1b", 3, 2, 2, false},
        VocabularyCase{"vocab_1f1b", 8, 16, 1, false},
        VocabularyCase{"vocab_interlaced", 2, 4, 2, false},
        VocabularyCase{"vocab_interlaced", 3, 7, 1, false},
        VocabularyCase{"vocab_interlaced", 4, 8, 2, true},
        VocabularyCase{"vocab_v_half", 2, 4, 2, false},
        VocabularyCase{"vocab_v_half", 4, 8, 1, true},
        VocabularyCase{"vocab_v_half", 4, 6, 2, false},
        VocabularyCase{"vocab_1f1b", 4, 8, 2, false, "full"},
        VocabularyCase{"vocab_1f1b", 4, 8, 1, true, "blocks"},
        VocabularyCase{"vocab_v_half", 2, 4, 1, false, "full"},
        VocabularyCase{"vocab_interlaced", 3, 6, 2, false, "blocks"}),
    [](const auto& info) {
      const VocabularyCase& c = info.param;
      return c.scheme + std::to_string(c.devices) + "_" + std::to_string(c.micro_batches) + "_" +
             std::to_string(c.barriers) + (c.tied ? "_tied" : "") + "_" + c.recompute;
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
    ExpectWithinTolerance(SerialLosses(sharded.graph, serial, kVocabularySteps),
                          SmallTraining("1f1b", 1, 4),
                          SerialLosses(whole, serial, kVocabularySteps));
  }
}

}  // namespace
}  // namespace pipelab
