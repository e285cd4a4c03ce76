// SlimPipe's context exchange for real: passes of slices compute chunks of attention for those of
// other stages. Losses as in serial training, within the tolerance of sums in parts; memory and
// bytes as predicted, under every scheme with slices that can exchange.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "experiments/training/comparison.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "pipelines/runtime/training.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr int kExchangeSteps = 3, kExchangeMicroBatches = 4;

class SliceExchangeTest : public testing::Test {
 protected:
  // A block for each stage.
  ModelGraph Gpt(int stages, bool llama) {
    GptConfig config;
    if (llama) {
      config = LlamaConfig(stages, /*hidden=*/16, /*heads=*/4, /*feed_forward=*/24, kSmallTokens,
                           batches_->vocabulary());
      config.kv_heads = 2;
    } else {
      config.layers = stages;
      config.hidden = 16;
      config.heads = 2;
      config.tokens = kSmallTokens;
      config.vocabulary = batches_->vocabulary();
    }
    config.dropout = 0.1;
    return BuildGpt(config).value();
  }

  // Embedding and head at the ends.
  static std::string Layout(int stages) {
    std::string text = "3";
    for (int s = 1; s < stages; ++s) absl::StrAppend(&text, s + 1 < stages ? ",2" : ",3");
    return text;
  }

  static TrainingOptions OptionsOf(const std::string& scheme, int devices, int slices) {
    TrainingOptions options = SmallTraining(scheme, devices, kExchangeMicroBatches);
    options.config.slices = slices;
    options.config.virtual_stages = scheme == "interleaved_seq1f1b" ? 2 : 0;
    options.config.layout = Layout(devices * (options.config.virtual_stages == 2 ? 2 : 1));
    options.config.slice_exchange = true;
    return options;
  }

  // Trains as serial training does and as predicted; the bytes that are exchanged.
  Bytes ExpectTrains(const ModelGraph& graph, const TrainingOptions& options) {
    SCOPED_TRACE(Describe(options));
    const auto training = PipelineTraining::Create(graph, *batches_, options);
    EXPECT_THAT(training, IsOk());
    if (!training.ok()) return Bytes(0);
    const absl::StatusOr<Trace> predicted = Simulate((*training)->program(), (*training)->costs());
    EXPECT_THAT(predicted, IsOk());
    if (!predicted.ok()) return Bytes(0);
    SchemeResult result;
    result.config = options.config;
    result.num_slices = options.config.slices;
    if (options.config.tensor > 1) result.tensor_terms = SplitTerms(graph);
    Bytes exchanged;
    for (int i = 0; i < kExchangeSteps; ++i) {
      const absl::StatusOr<TrainingStep> step = (*training)->Step();
      EXPECT_THAT(step, IsOk());
      if (!step.ok()) return Bytes(0);
      result.losses.push_back(step->loss);
      for (int64_t t = 0; t < options.config.tensor; ++t) {
        const Trace measured = TraceOfMember(step->trace, options.config.tensor, t);
        ExpectStateAndTraffic(*predicted, measured);
        for (size_t d = 0; d < measured.devices.size(); ++d) {
          const DeviceTrace &m = measured.devices[d], &p = predicted->devices[d];
          EXPECT_EQ(m.peak_activation, p.peak_activation) << "device " << d << ", step " << i;
          EXPECT_EQ(m.tensor_bytes, p.tensor_bytes) << "device " << d << ", step " << i;
          exchanged += m.tensor_bytes;
        }
      }
    }
    SerialOptions serial = SmallSerial(*batches_, kExchangeMicroBatches);
    const Equality equality = CompareLosses(result, SerialLosses(graph, serial, kExchangeSteps));
    EXPECT_TRUE(equality.ok) << equality.text;
    return exchanged;
  }

  const std::unique_ptr<TextBatchSource> batches_ = SmallText();
};

TEST_F(SliceExchangeTest, EverySchemeTrainsAsSerial) {
  for (const bool llama : {false, true}) {
    for (const char* scheme : {"terapipe", "seq1f1b", "zb_seq1f1b", "interleaved_seq1f1b"}) {
      const int devices = std::string(scheme) == "interleaved_seq1f1b" ? 3 : 4;
      for (const int slices : {4, 8}) {
        TrainingOptions options = OptionsOf(scheme, devices, slices);
        const ModelGraph graph = Gpt(devices == 3 ? 6 : 4, llama);
        options.rendezvous = llama;
        EXPECT_GT(ExpectTrains(graph, options), Bytes(0));
      }
    }
  }
}

// A recompute exchanges nothing; what it rebuilds is what was exchanged, but for rounding.
TEST_F(SliceExchangeTest, WithRecomputes) {
  TrainingOptions options = OptionsOf("interleaved_seq1f1b", 3, 4);
  options.config.recompute = Recompute::kFull;
  EXPECT_GT(ExpectTrains(Gpt(6, /*llama=*/false), options), Bytes(0));
}

// Each rank of a group exchanges its heads, and copies of a stage their samples.
TEST_F(SliceExchangeTest, InTensorParallelGroupsAndCopies) {
  for (const bool sequence : {false, true}) {
    TrainingOptions options = OptionsOf("terapipe", 3, 4);
    options.config.tensor = 2;
    options.config.sequence_parallel = sequence;
    GptConfig config;
    config.layers = 3;
    config.hidden = 16;
    config.heads = 2;
    config.tokens = kSmallTokens;
    config.vocabulary = (batches_->vocabulary() + 1) / 2 * 2;
    config.dropout = 0.1;
    EXPECT_GT(ExpectTrains(BuildGpt(config).value(), options), Bytes(0));
  }
  TrainingOptions options = OptionsOf("terapipe", 3, 4);
  options.config.data = 2;
  options.config.micro_batch_size = kSmallSamples / 2;
  EXPECT_GT(ExpectTrains(Gpt(3, /*llama=*/true), options), Bytes(0));
}

TEST_F(SliceExchangeTest, BadRequestsAreRefused) {
  const auto refused = [&](const ModelGraph& graph, const TrainingOptions& options,
                           const char* what) {
    EXPECT_THAT(PipelineTraining::Create(graph, *batches_, options).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  const ModelGraph graph = Gpt(4, /*llama=*/false);
  TrainingOptions options = OptionsOf("seq1f1b", 4, 3);
  refused(graph, options, "slice_exchange: token slices of 3,3,2 tokens: must be equal");
  options = OptionsOf("seq1f1b", 4, 4);
  options.config.layout = "5,1,2,2";
  refused(graph, options, "slice_exchange: stage 1 has 1 attention layers, stage 0 2");
  options = OptionsOf("1f1b", 4, 0);
  refused(graph, options, "slice_exchange: 1f1b has no token slices");
  GptConfig config = LlamaConfig(4, 16, 4, 24, kSmallTokens, batches_->vocabulary());
  config.windows = {4};
  refused(BuildGpt(config).value(), OptionsOf("seq1f1b", 4, 4), "has a window of 4 tokens");
}

}  // namespace
}  // namespace pipelab
