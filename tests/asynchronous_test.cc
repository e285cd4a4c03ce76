// Asynchronous schemes train as their papers say: losses and parameters of a small GPT equal, to
// the bit, the serial loop that applies the published staleness rule
// (pipelines/runtime/staleness.h).
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/data/batch_source.h"
#include "models/data/camera_frames.h"
#include "models/layers/serial_trainer.h"
#include "pipelines/ir/versions.h"
#include "pipelines/runtime/staleness.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kRuns = 3;

class Asynchronous : public testing::Test {
 protected:
  // Trains both ways and returns the pipeline's losses.
  std::vector<double> Compare(const TrainingOptions& options) {
    return ExpectAsSerial(graph_, *batches_, options, kRuns);
  }

  const ModelGraph graph_ = SmallGpt(/*tied=*/false);
  const std::unique_ptr<BatchSource> batches_ = SmallText();
};

TEST_F(Asynchronous, EverySchemeFollowsItsStalenessRule) {
  int schemes = 0;
  for (const Scheme& scheme : Catalog()) {
    if (!scheme.asynchronous) continue;
    ++schemes;
    for (int devices : {1, 2, 4}) {
      for (int micro_batches : {4, 8, 12}) {
        SCOPED_TRACE(testing::Message()
                     << scheme.name << " P=" << devices << " M=" << micro_batches);
        TrainingOptions options = SmallTraining(std::string(scheme.name), devices, micro_batches);
        const std::vector<double> losses = Compare(options);
        ASSERT_EQ(losses.size(), size_t{kRuns});
        EXPECT_LT(losses.back(), losses.front()) << "the test must train something";
        if (micro_batches == 8) {
          options.config.recompute = Recompute::kFull;
          EXPECT_EQ(Compare(options), losses);
        }
      }
    }
  }
  EXPECT_EQ(schemes, 4);
}

// Streams of text and of frames: many times as long as the longest delay, of 2 (8 - 1) samples.
TEST_F(Asynchronous, OverTimeFollowsTheDelayLaw) {
  constexpr int kSamples = 100;
  const FrameStream frames = SyntheticFrames(kSamples + 1, /*height=*/6, /*width=*/8);
  const NextFrameSource images(&frames);
  for (int devices : {1, 2, 3, 4, 8}) {
    const TrainingOptions options = SmallTraining("over_time", devices, kSamples);
    EXPECT_EQ(Compare(options).size(), size_t{kRuns});
    EXPECT_EQ(ExpectAsSerial(SmallChain(), images, options, kRuns).size(), size_t{kRuns});
  }
}

// However long the stream is: bits follow the law, and a device's memory, as predicted, does not
// grow. Of the longest the memory alone, which takes no training.
TEST_F(Asynchronous, OverTimeFollowsTheDelayLawForLong) {
  const FrameStream frames = SyntheticFrames(/*frames=*/501, /*height=*/6, /*width=*/8);
  const NextFrameSource images(&frames);
  const ModelGraph chain = SmallChain();
  for (int devices : {1, 2, 3, 4, 8}) {
    std::vector<std::vector<Bytes>> peaks;
    for (int samples : {10, 1000, 10000}) {
      const TrainingOptions options = SmallTraining("over_time", devices, samples);
      if (samples <= 1000) {
        EXPECT_EQ(ExpectAsSerial(chain, images, options, /*steps=*/1).size(), 1u);
      }
      PIPELAB_ASSERT_OK_AND_ASSIGN(const auto training,
                                   PipelineTraining::Create(chain, images, options));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace,  // ExpectAsSerial has compared it
                                   Simulate(training->program(), training->costs()));
      peaks.emplace_back();
      for (const DeviceTrace& d : trace.devices) {
        peaks.back().push_back(d.peak_activation + d.peak_state);
      }
    }
    EXPECT_EQ(peaks[0], peaks[1]);
    EXPECT_EQ(peaks[0], peaks[2]);
  }
}

// The samples of one step of a source, a step each.
class OneByOne final : public BatchSource {
 public:
  explicit OneByOne(const BatchSource* source) : BatchSource(source->fields()), source_(source) {}
  void FillFloats(int field, int64_t step, int64_t first, absl::Span<float> out) const override {
    source_->FillFloats(field, 0, step * kSmallSamples + first, out);
  }
  void FillIds(int field, int64_t step, int64_t first, absl::Span<int32_t> out) const override {
    source_->FillIds(field, 0, step * kSmallSamples + first, out);
  }

 private:
  const BatchSource* const source_;
};

// On one device a stream is learned online: a loop that knows of no delays and takes a step after
// each micro-batch. (No dropout: its masks are those of a step.)
TEST_F(Asynchronous, OverTimeOnOneDeviceIsOnlineLearning) {
  constexpr int kSamples = 500;
  const FrameStream frames = SyntheticFrames(/*frames=*/501, /*height=*/6, /*width=*/8);
  const NextFrameSource images(&frames);
  const ModelGraph gpt = SmallGpt(/*tied=*/false, /*words_multiple=*/1, /*dropout=*/0),
                   chain = SmallChain();
  for (const auto& [graph, source] :
       {std::pair<const ModelGraph*, const BatchSource*>(&gpt, batches_.get()),
        {&chain, &images}}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        const auto training,
        PipelineTraining::Create(*graph, *source, SmallTraining("over_time", 1, kSamples)));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep step, training->Step());
    const OneByOne one_by_one(source);
    Arena arena;
    const auto backend = MakeCpuBackend(&arena);
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        const auto online,
        SerialTrainer::Create(*graph, backend.get(), SmallSerial(one_by_one, /*micro_batches=*/1)));
    double sum = 0;
    for (int t = 0; t < kSamples; ++t) sum += online->Step().value();
    EXPECT_NEAR(step.loss, sum / kSamples, 1e-12 * step.loss) << "sums of sums";
    for (const LayerSpec& layer : graph->layers) {
      for (const ParameterSpec& p : layer.parameters) {
        EXPECT_EQ(training->ParameterValue(p.name).value(), online->ParameterValue(p.name).value())
            << p.name;
      }
    }
  }
}

// Groups of two devices sum their gradients before each step: the same rule, in the order of the
// loop by copy.
TEST_F(Asynchronous, GroupsFollowTheRule) {
  for (const Scheme& scheme : Catalog()) {
    if (!scheme.asynchronous) continue;
    TrainingOptions options = SmallTraining(std::string(scheme.name), 2, 8);
    options.config.data = 2;
    options.config.micro_batch_size = kSmallSamples / 2;
    for (bool rendezvous : {false, true}) {
      options.rendezvous = rendezvous;
      EXPECT_EQ(Compare(options).size(), size_t{kRuns});
    }
  }
}

// The rules differ where the pipeline is deep enough, so equality with one says something.
TEST_F(Asynchronous, RulesDiffer) {
  const std::vector<double> stashed = Compare(SmallTraining("pipedream", 4, 8)),
                            synchronised = Compare(SmallTraining("pipedream_vertical_sync", 4, 8)),
                            two = Compare(SmallTraining("pipedream_2bw", 4, 8));
  EXPECT_NE(stashed, synchronised);
  EXPECT_NE(stashed, two);
  EXPECT_NE(stashed, Compare(SmallTraining("pipedream", 1, 8)));
}

// PipeDream-2BW with more micro-batches an update than stages.
TEST_F(Asynchronous, UpdateEvery) {
  TrainingOptions options = SmallTraining("pipedream_2bw", 3, 12);
  const std::vector<double> every_three = Compare(options);
  for (int every : {4, 6}) {
    options.config.update_interval = every;
    const std::vector<double> losses = Compare(options);
    ASSERT_EQ(losses.size(), size_t{kRuns});
    EXPECT_NE(losses, every_three) << every;
  }
}

// What arenas measure beyond a synchronous schedule's weights: the versions read off the schedule.
TEST_F(Asynchronous, MemoryOfOlderVersions) {
  for (const auto& [scheme, live] :
       {std::make_tuple("pipedream", std::vector<int>{4, 3, 2, 1}),
        std::make_tuple("pipedream_vertical_sync", std::vector<int>{4, 4, 4, 4}),
        std::make_tuple("pipedream_2bw", std::vector<int>{2, 2, 2, 2})}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        auto training, PipelineTraining::Create(graph_, *batches_, SmallTraining(scheme, 4, 12)));
    EXPECT_EQ(LiveVersions(training->program().schedule), live) << scheme;
    for (int run = 0; run < 2; ++run) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep step, training->Step());
      for (int d = 0; d < 4; ++d) {
        const StageMemory& memory = training->costs().stages[d].memory;
        EXPECT_GT(memory.weights, Bytes(0));
        EXPECT_EQ(step.trace.devices[d].peak_state, memory.state + memory.weights * (live[d] - 1))
            << scheme << " device " << d << " run " << run;
      }
    }
  }
}

TEST_F(Asynchronous, OtherSchedulesHaveNoPublishedRule) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule schedule, MakeSchedule("1f1b", {2, 4}));
  EXPECT_THAT(PublishedStaleness(schedule),
              StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("schedule \"1f1b\"")));
}

TEST_F(Asynchronous, TiesBetweenStagesAreRefused) {
  const ModelGraph tied = SmallGpt(/*tied=*/true);
  EXPECT_THAT(PipelineTraining::Create(tied, *batches_, SmallTraining("pipedream", 2, 4)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("is tied between stages, and the schedule has its own")));
}

}  // namespace
}  // namespace pipelab
