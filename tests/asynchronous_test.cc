// Asynchronous schemes train as their papers say: losses and parameters of a small GPT equal, to
// the bit, the serial loop that applies the published staleness rule
// (pipelines/runtime/staleness.h).
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/data/camera_frames.h"
#include "models/layers/serial_trainer.h"
#include "pipelines/ir/versions.h"
#include "pipelines/runtime/batch_norm.h"
#include "pipelines/runtime/staleness.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kRuns = 3;

class StaleTrainer {
 public:
  StaleTrainer(const ModelGraph& graph, const BatchSource& data, const PipelineTraining& training) {
    const Schedule& schedule = training.program().schedule;
    SerialOptions options = SmallSerial(data, schedule.num_micro_batches);
    options.stage_of_layer = training.partition().stage_of_layer;
    options.staleness = PublishedStaleness(schedule).value();
    EXPECT_TRUE(SumByCopy(schedule, &options));
    trainer_ = SerialTrainer::Create(graph, backend_.get(), options).value();
  }

  double Run() { return trainer_->Step().value(); }
  std::vector<float> Value(const std::string& name) const {
    return trainer_->ParameterValue(name).value();
  }

 private:
  Arena arena_;
  const std::unique_ptr<Backend> backend_ = MakeCpuBackend(&arena_);
  std::unique_ptr<SerialTrainer> trainer_;
};

class Asynchronous : public testing::Test {
 protected:
  std::vector<double> Compare(const TrainingOptions& options) {
    return Compare(graph_, *batches_, options);
  }
  // Trains both ways and returns the pipeline's losses.
  static std::vector<double> Compare(const ModelGraph& graph, const BatchSource& batches,
                                     const TrainingOptions& options) {
    auto training = PipelineTraining::Create(graph, batches, options);
    EXPECT_THAT(training, IsOk());
    if (!training.ok()) return {};
    StaleTrainer plain(graph, batches, **training);
    std::vector<double> losses;
    for (int run = 0; run < kRuns; ++run) {
      const absl::StatusOr<TrainingStep> step = (*training)->Step();
      EXPECT_THAT(step, IsOk());
      if (!step.ok()) return {};
      EXPECT_EQ(step->loss, plain.Run()) << "run " << run;
      losses.push_back(step->loss);
    }
    for (const LayerSpec& layer : graph.layers) {
      for (const ParameterSpec& p : layer.parameters) {
        EXPECT_EQ((*training)->ParameterValue(p.name).value(), plain.Value(p.name)) << p.name;
      }
    }
    return losses;
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
          options.sizes.recompute = true;
          EXPECT_EQ(Compare(options), losses);
        }
      }
    }
  }
  EXPECT_EQ(schemes, 4);
}

// A stream of 500 samples of text, and of 500 frames.
TEST_F(Asynchronous, OverTimeFollowsTheDelayLaw) {
  const FrameStream frames = SyntheticFrames(/*frames=*/501, /*height=*/6, /*width=*/8);
  const NextFrameSource images(&frames);
  const ModelGraph chain = SmallChain();
  for (int devices : {1, 2, 3, 4, 8}) {
    SCOPED_TRACE(devices);
    EXPECT_EQ(Compare(SmallTraining("over_time", devices, 500)).size(), size_t{kRuns});
    EXPECT_EQ(Compare(chain, images, SmallTraining("over_time", devices, 500)).size(),
              size_t{kRuns});
  }
}

// However long the stream is.
TEST_F(Asynchronous, OverTimeFollowsTheDelayLawForLong) {
  const FrameStream frames = SyntheticFrames(/*frames=*/501, /*height=*/6, /*width=*/8);
  const NextFrameSource images(&frames);
  const ModelGraph chain = SmallChain();
  EXPECT_EQ(Compare(chain, images, SmallTraining("over_time", 3, 10000)).size(), size_t{kRuns});
}

// A device's memory does not grow with the stream.
TEST_F(Asynchronous, OverTimeHoldsAsMuchOfAnyStream) {
  const FrameStream frames = SyntheticFrames(/*frames=*/100, /*height=*/6, /*width=*/8);
  const NextFrameSource images(&frames);
  const ModelGraph chain = SmallChain();
  for (int devices : {1, 2, 4, 8}) {
    std::vector<std::vector<Bytes>> peaks;
    for (int samples : {10, 10000}) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(
          auto training,
          PipelineTraining::Create(chain, images, SmallTraining("over_time", devices, samples)));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep step, training->Step());
      peaks.emplace_back();
      for (const DeviceTrace& d : step.trace.devices) peaks.back().push_back(d.peak_activation);
    }
    EXPECT_EQ(peaks[0], peaks[1]);
  }
}

// Groups of two devices sum their gradients before each step: the same rule, in the order of the
// loop by copy.
TEST_F(Asynchronous, GroupsFollowTheRule) {
  for (const Scheme& scheme : Catalog()) {
    if (!scheme.asynchronous || (scheme.options & kLateGradients) != 0) continue;
    TrainingOptions options = SmallTraining(std::string(scheme.name), 2, 8);
    options.sizes.data_parallel = 2;
    for (bool rendezvous : {false, true}) {
      options.rendezvous = rendezvous;
      PIPELAB_ASSERT_OK_AND_ASSIGN(auto training,
                                   PipelineTraining::Create(graph_, *batches_, options));
      StaleTrainer plain(graph_, *batches_, *training);
      for (int run = 0; run < kRuns; ++run) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep step, training->Step());
        EXPECT_EQ(step.loss, plain.Run()) << scheme.name << " run " << run;
      }
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
    options.sizes.update_interval = every;
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
