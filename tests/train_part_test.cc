// The training loop of the experiments: what it leaves behind when it is stopped, goes on, or
// diverges.
#include "experiments/train/train_part.h"

#include <atomic>
#include <csignal>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/train/predict.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/checkpoint/training_state.h"
#include "models/layers/test_layers.h"
#include "models/layers/test_nets.h"
#include "models/zoo/branch_stages.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

// Random data, with something happening at one step.
class Eventful : public RandomData {
 public:
  Eventful(std::vector<DataField> fields, int64_t interrupt_at, int64_t diverge_at)
      : RandomData(std::move(fields)), interrupt_at_(interrupt_at), diverge_at_(diverge_at) {}

  void FillFloats(int field, int64_t step, int64_t first_sample,
                  absl::Span<float> out) const override {
    RandomData::FillFloats(field, step, first_sample, out);
    if (step == interrupt_at_ && !raised_.exchange(true)) std::raise(SIGINT);
    if (step == diverge_at_) out[0] = std::numeric_limits<float>::infinity();
  }

 private:
  const int64_t interrupt_at_, diverge_at_;
  mutable std::atomic<bool> raised_{false};
};

ModelGraph CandleUno() { return SmallNets(/*dropout=*/0, Activation::kRelu)[3]; }  // CANDLE-Uno

class TrainPartTest : public testing::Test {
 protected:
  TrainPartTest() {
    settings_.study = "test_train";
    settings_.scheme = "graph";
    settings_.micro_batches = 4;
    settings_.samples = 2;
    settings_.steps = 7;
    settings_.evaluate_every = 3;
    settings_.checkpoint = File("whole");
    work_.data = "numbers";
  }

  static std::string File(const std::string& name) {
    return JoinPath(testing::TempDir(), name + ".safetensors");
  }

  static StudyPart Part(int64_t interrupt_at, int64_t diverge_at) {
    StudyPart part;
    part.graph = CandleUno();
    part.parallel_stages = *BranchStages(part.graph, 1);
    part.train = std::make_shared<Eventful>(TestFieldsOf(part.graph), interrupt_at, diverge_at);
    part.held_out = std::make_shared<RandomData>(TestFieldsOf(part.graph));
    part.held_out_samples = 70;
    return part;
  }

  static void ExpectSameFiles(const std::string& a, const std::string& b) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string bytes_a, ReadFile(a));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string bytes_b, ReadFile(b));
    EXPECT_TRUE(bytes_a == bytes_b) << a << " and " << b;
  }

  TrainSettings settings_;
  StudyWork work_;
};

TEST_F(TrainPartTest, GoesOnAfterAnInterruptionAsIfThereWereNone) {
  const StudyPart calm = Part(-1, -1), stopped = Part(/*interrupt_at=*/3, -1);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainedPart whole, TrainPart(settings_, work_, calm));
  EXPECT_FALSE(whole.interrupted);
  EXPECT_EQ(whole.steps, 7);
  EXPECT_EQ(whole.training.values.size(), 7);
  EXPECT_EQ(whole.held_out.steps, (std::vector<int64_t>{3, 6, 7}));
  settings_.checkpoint = File("part");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainedPart first, TrainPart(settings_, work_, stopped));
  EXPECT_TRUE(first.interrupted);
  EXPECT_EQ(first.steps, 4);  // the step that was under way is done
  EXPECT_EQ(first.checkpoint, File("part"));
  settings_.resume = File("part");
  settings_.scheme = "1f1b";
  settings_.devices = 3;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainedPart rest, TrainPart(settings_, work_, calm));
  EXPECT_FALSE(rest.interrupted);
  EXPECT_EQ(rest.steps, 7);
  EXPECT_EQ(rest.steps_here, 3);
  EXPECT_EQ(rest.held_out.steps, whole.held_out.steps);
  EXPECT_EQ(rest.held_out.values.back(), whole.held_out.values.back());
  ExpectSameFiles(File("whole"), File("part"));
}

TEST_F(TrainPartTest, TheTrainedNetworkIsTheOneOfTheHeldOutCurve) {
  const StudyPart part = Part(-1, -1);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainedPart done, TrainPart(settings_, work_, part));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const double loss, MeanLoss(done.trained->network(), *part.held_out, part.held_out_samples));
  EXPECT_EQ(loss, done.held_out.values.back());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const double other,
                               MeanLoss(done.trained->network(), *part.held_out, 70, /*chunk=*/9));
  EXPECT_NEAR(other, loss, 1e-6);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> predictions,
                               Predict(done.trained->network(), *part.held_out, 70, /*chunk=*/9));
  EXPECT_EQ(predictions.size(), 70);
}

TEST_F(TrainPartTest, WritesCheckpointsOnTheWay) {
  settings_.checkpoint = File("on_the_way");
  settings_.checkpoint_every = 2;
  // Diverges after the third checkpoint, which stays.
  EXPECT_THAT(TrainPart(settings_, work_, Part(-1, /*diverge_at=*/6)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("training diverges: the loss of step 7 is not finite")));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState state, ReadTrainingState(File("on_the_way")));
  EXPECT_EQ(state.step, 6);
}

TEST_F(TrainPartTest, RefusesCheckpointsOfOtherTrainings) {
  const StudyPart part = Part(-1, -1);
  ASSERT_THAT(TrainPart(settings_, work_, part), IsOk());
  settings_.resume = settings_.checkpoint;
  const auto expect = [&](const TrainSettings& settings, const StudyWork& work,
                          const std::string& message) {
    EXPECT_THAT(TrainPart(settings, work, part),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  TrainSettings settings = settings_;
  settings.samples = 4;
  expect(settings, work_, "trained with --micro_batch_size = 2, not 4");
  settings = settings_;
  settings.seed = 5;
  expect(settings, work_, "trained with seed 1, not 5");
  settings = settings_;
  settings.study = "other_train";
  expect(settings, work_, "trained with study = test_train, not other_train");
  settings = settings_;
  settings.validation = true;
  expect(settings, work_, "trained with held out = the held-out part, not a part of");
  settings = settings_;
  settings.steps = 5;
  expect(settings, work_, "has done 7 already");
  StudyWork work;
  work.data = "letters";
  expect(settings_, work, "trained with data = numbers, not letters");
}

}  // namespace
}  // namespace pipelab
