// A small GPT whose copies are in sets (--shards): each set divides the sharded state among its
// copies, and all sets have the same. Where a stage's gradients are reduced once, losses have the
// bits of a serial loop that adds within sets and then between them. State, activations and traffic
// are as predicted, to the byte.
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/layers/serial_trainer.h"
#include "models/zoo/gpt.h"
#include "pipelines/ir/sharding.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kHybridSteps = 3;
constexpr int kHybridMicroBatches = 4;
constexpr Sharding kShardings[] = {Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully};

class HybridShardingTest : public testing::Test {
 protected:
  static TrainingOptions OptionsOf(const std::string& scheme, int devices, int copies, int shards) {
    TrainingOptions options = SmallTraining(scheme, devices, kHybridMicroBatches);
    options.config.micro_batch_size = 1;
    options.config.data = copies;
    options.config.shards = shards;
    return options;
  }

  std::vector<double> Train(const TrainingOptions& options) {
    const auto training = PipelineTraining::Create(graph_, *batches_, options);
    EXPECT_THAT(training, IsOk());
    if (!training.ok()) return {};
    return LossesAsPredicted(training->get(), kHybridSteps);
  }

  // The losses of copies that add as the options say.
  std::vector<double> Serial(const TrainingOptions& o) {
    SerialOptions options = SmallSerial(*batches_, kHybridMicroBatches);
    options.micro_batch_size = o.samples();
    options.optimizer = o.optimizer;
    options.copies = o.config.data;
    options.shards = o.config.shards;
    return SerialLosses(graph_, options, kHybridSteps);
  }

  const std::unique_ptr<BatchSource> batches_ = SmallText();
  ModelGraph graph_ = SmallGpt(/*tied=*/false);
};

// 8 copies of 2 pipeline devices are 16 devices.
TEST_F(HybridShardingTest, TrainsAsTheSerialLoopThatAddsInSets) {
  int equal = 0, close = 0, other = 0;
  for (const auto& [copies, shards] : {std::make_tuple(4, 2), {4, 4}, {8, 2}, {8, 4}}) {
    const std::vector<double> serial = Serial(OptionsOf("1f1b", 1, copies, shards));
    ASSERT_EQ(serial.size(), size_t{kHybridSteps});
    ASSERT_LT(serial.back(), serial.front());
    other += serial != Serial(OptionsOf("1f1b", 1, copies, 0));
    for (const char* scheme : {"gpipe", "1f1b", "interleaved", "zb_h1", "breadth_first"}) {
      for (const int devices : {1, 2}) {
        TrainingOptions options = OptionsOf(scheme, devices, copies, shards);
        if (!Serves(options.config)) continue;
        for (const Sharding sharding : kShardings) {
          options.config.sharding = sharding;
          options.config.overlap_data = sharding != kShardings[1];
          SCOPED_TRACE(testing::Message() << Describe(options) << ", D=" << copies << ", shards "
                                          << shards << ", " << ShardingName(sharding));
          const std::vector<double> losses = Train(options);
          // Interleaved stages have several runs of weight gradients.
          if (sharding == Sharding::kOptimizer || options.config.scheme != "interleaved") {
            EXPECT_EQ(losses, serial);
            ++equal;
          } else {
            ExpectWithinTolerance(losses, options, serial);
            ++close;
          }
        }
      }
    }
  }
  EXPECT_GE(equal, 100);
  EXPECT_GE(close, 8);
  EXPECT_GE(other, 2) << "sums in sets have another order than plain ones";
}

// Ties stay whole, and sums of squares are of each part once.
TEST_F(HybridShardingTest, TiedAndClipped) {
  graph_ = SmallGpt(/*tied=*/true);
  for (const char* scheme : {"1f1b", "breadth_first"}) {
    for (const Sharding sharding : kShardings) {
      TrainingOptions options = OptionsOf(scheme, 2, 4, 2);
      options.config.sharding = sharding;
      options.config.overlap_data = true;
      options.rendezvous = true;
      SCOPED_TRACE(testing::Message() << scheme << " " << ShardingName(sharding));
      EXPECT_EQ(Train(options), Serial(options));
      options.optimizer.clip_norm = 0.5;
      ExpectWithinTolerance(Train(options), options, Serial(options));
    }
  }
}

// Each replica has sets of its own; the optimizer's too, which without sets is of all copies.
TEST_F(HybridShardingTest, Replicas) {
  for (const int copies : {2, 4}) {
    TrainingOptions options = OptionsOf("chimera", 2, copies, 0);
    const std::vector<double> serial = Serial(options);
    for (const Sharding sharding : kShardings) {
      for (const bool hard : {false, true}) {
        SCOPED_TRACE(testing::Message() << copies << " " << ShardingName(sharding) << hard);
        options.config.shards = 2;
        options.config.sharding = sharding;
        options.config.overlap_data = hard;
        ExpectWithinTolerance(Train(options), options, serial);
      }
    }
  }
}

TEST_F(HybridShardingTest, TensorAndContextParallelDevices) {
  GptConfig config;
  config.layers = 2;
  config.hidden = 16;
  config.heads = 4;
  config.tokens = kSmallTokens;
  config.vocabulary = (SmallText()->vocabulary() + 3) / 4 * 4;
  PIPELAB_ASSERT_OK_AND_ASSIGN(graph_, BuildGpt(config));
  for (const auto& [tensor, context] : {std::make_tuple(2, 1), {1, 2}, {2, 2}}) {
    TrainingOptions options = OptionsOf("1f1b", 2, 4, 2);
    options.config.tensor = tensor;
    options.config.context = context;
    std::vector<std::vector<double>> all;
    for (const Sharding sharding : kShardings) {
      SCOPED_TRACE(testing::Message()
                   << "T=" << tensor << " C=" << context << " " << ShardingName(sharding));
      options.config.sharding = sharding;
      const auto training = PipelineTraining::Create(graph_, *batches_, options);
      ASSERT_THAT(training, IsOk());
      auto& losses = all.emplace_back();
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace predicted,
                                   Simulate((*training)->program(), (*training)->costs()));
      for (int step = 0; step < kHybridSteps; ++step) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep done, (*training)->Step());
        losses.push_back(done.loss);
        ExpectStateAndTraffic(predicted, TraceOfMember(done.trace, tensor, 0));
        ExpectStateAndTraffic(predicted, TraceOfMember(done.trace, tensor, tensor - 1));
      }
      EXPECT_EQ(losses, all[0]);
    }
    SerialOptions serial = SmallSerial(*batches_, kHybridMicroBatches);
    serial.micro_batch_size = options.samples();
    const std::vector<double> plain = SerialLosses(graph_, serial, kHybridSteps);
    ASSERT_EQ(plain.size(), all[0].size());
    for (size_t step = 0; step < plain.size(); ++step) {
      EXPECT_NEAR(all[0][step], plain[step], 1e-4);
    }
  }
}

// By name: with the same sets the bits go on, with others the state does.
TEST_F(HybridShardingTest, Checkpoints) {
  TrainingOptions options = OptionsOf("1f1b", 2, 4, 2);
  options.config.sharding = Sharding::kFully;
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto whole, PipelineTraining::Create(graph_, *batches_, options));
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto first, PipelineTraining::Create(graph_, *batches_, options));
  ASSERT_THAT(first->Step(), IsOk());
  ASSERT_THAT(whole->Step(), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState state, first->State());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep next, whole->Step());
  for (const int shards : {0, 2, 4}) {
    for (const Sharding sharding : kShardings) {
      SCOPED_TRACE(testing::Message() << shards << " " << ShardingName(sharding));
      options.config.shards = shards;
      options.config.sharding = sharding;
      PIPELAB_ASSERT_OK_AND_ASSIGN(auto other,
                                   PipelineTraining::Create(graph_, *batches_, options));
      ASSERT_THAT(other->SetState(state), IsOk());
      PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState again, other->State());
      for (const auto& [name, tensor] : state.tensors) {
        EXPECT_EQ(again.tensors.at(name).values, tensor.values) << name;
      }
      PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep step, other->Step());
      if (shards == 2) {
        EXPECT_EQ(step.loss, next.loss);
      }
      EXPECT_NEAR(step.loss, next.loss, 1e-5);
    }
  }
}

TEST_F(HybridShardingTest, Refusals) {
  const auto error = [&](int shards, Sharding sharding) {
    TrainingOptions options = OptionsOf("1f1b", 2, 4, shards);
    options.config.sharding = sharding;
    return PipelineTraining::Create(graph_, *batches_, options).status();
  };
  EXPECT_THAT(error(3, Sharding::kFully),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("shards=3: must be at least 2 and divide the 4 "
                                          "data-parallel copies")));
  EXPECT_THAT(error(1, Sharding::kFully), StatusIs(absl::StatusCode::kInvalidArgument,
                                                   testing::HasSubstr("must be at least 2")));
  EXPECT_THAT(error(2, Sharding::kReplicated),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("shards=2: nothing is sharded")));
}

}  // namespace
}  // namespace pipelab
