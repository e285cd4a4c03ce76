// A small GPT whose layers are divided among tensor-parallel groups: its gradients, norm and state
// are those of the whole, older weights and slices of tokens are as without groups, and what cannot
// be ends in one line.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "experiments/training/comparison.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/checkpoint/training_state.h"
#include "models/layers/serial_trainer.h"
#include "models/zoo/gpt.h"
#include "pipelines/runtime/training.h"
#include "tests/small_gpt.h"
#include "tests/tensor_parallel_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Gradients, seen as what plain gradient descent subtracts: sums of a product's terms in another
// order, and then through every layer. Each parameter against its own largest gradient.
TEST_F(TensorParallelTest, GradientsAreTheSerialOnes) {
  for (const bool tied : {false, true}) {
    const ModelGraph graph = *BuildGpt(DividedGpt(tied));
    for (const Grid& grid : {Grid{1, 2, 1}, Grid{1, 8, 1}, Grid{2, 2, 2}, Grid{4, 2, 1}}) {
      SCOPED_TRACE(absl::StrCat(Text(grid), " tied=", tied));
      TrainingOptions options = OptionsOf("1f1b", grid);
      options.config.sequence_parallel = tied;
      SgdOptions sgd;
      sgd.learning_rate = 1;
      options.optimizer = OptimizerOptions::Sgd(sgd);
      PIPELAB_ASSERT_OK_AND_ASSIGN(auto training,
                                   PipelineTraining::Create(graph, *batches_, options));
      Arena arena;
      const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
      PIPELAB_ASSERT_OK_AND_ASSIGN(auto trainer,
                                   SerialTrainer::Create(graph, backend.get(), SerialOf(options)));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const auto gradients, trainer->LossGradients());
      std::map<std::string, std::string> parameter;  // of a value, one that has it
      for (const LayerSpec& layer : graph.layers) {
        for (const ParameterSpec& p : layer.parameters) parameter.emplace(ValueName(p), p.name);
      }
      std::map<std::string, std::vector<float>> before;
      for (const auto& [name, gradient] : gradients) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(before[name], training->ParameterValue(parameter.at(name)));
      }
      ASSERT_THAT(training->Step(), IsOk());
      const double share =
          static_cast<double>(SplitTerms(graph)) * std::numeric_limits<float>::epsilon();
      for (const auto& [name, gradient] : gradients) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> after,
                                     training->ParameterValue(parameter.at(name)));
        ASSERT_EQ(after.size(), gradient.size()) << name;
        double largest = 0;
        for (float g : gradient) largest = std::max(largest, std::abs(double{g}));
        for (size_t i = 0; i < gradient.size(); ++i) {
          const double step = double{before[name][i]} - double{after[i]};
          // The difference of two floats has their rounding.
          const double rounding =
              std::numeric_limits<float>::epsilon() * std::abs(double{before[name][i]});
          ASSERT_NEAR(step, gradient[i], share * largest + rounding) << name << "[" << i << "]";
        }
      }
    }
  }
}

// The norm of all gradients: each element once, whichever ranks have it.
TEST_F(TensorParallelTest, ClippingByTheGlobalNorm) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/true));
  TrainingOptions options = OptionsOf("1f1b", {2, 1, 1});
  options.optimizer.clip_norm = 0.2;
  const GridResult whole = Train(graph, options);
  const std::vector<double> serial = SerialLosses(graph, SerialOf(options), kGridSteps);
  for (const Grid& grid : {Grid{1, 2, 1}, Grid{2, 2, 1}, Grid{2, 2, 2}, Grid{1, 4, 2}}) {
    for (Sharding sharding : {Sharding::kReplicated, Sharding::kFully}) {
      if (sharding == Sharding::kFully && grid.data == 1) continue;
      SCOPED_TRACE(absl::StrCat(Text(grid), " ", ShardingName(sharding)));
      options.config.pipeline = grid.pipeline;
      options.config.data = grid.data;
      options.config.micro_batch_size = samples_ / grid.data;
      options.config.tensor = grid.tensor;
      options.config.sharding = sharding;
      const GridResult run = Train(graph, options);
      ExpectTrainsAsSerial(graph, run, options, serial);
      ASSERT_EQ(run.norms.size(), whole.norms.size());
      for (size_t i = 0; i < run.norms.size(); ++i) {
        EXPECT_GT(run.norms[i], options.optimizer.clip_norm);
        EXPECT_NEAR(run.norms[i], whole.norms[i],
                    LossTolerance(static_cast<int>(i) + 1, SplitTerms(graph), whole.norms[i]));
      }
    }
  }
}

// A state is of whole parameters: it goes from any division to any other, and on with the same bits
// where the division is the same.
TEST_F(TensorParallelTest, StatesGoBetweenDivisions) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/true));
  TrainingOptions options = OptionsOf("1f1b", {2, 2, 2});
  options.config.sharding = Sharding::kFully;
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto first, PipelineTraining::Create(graph, *batches_, options));
  for (int step = 0; step < 3; ++step) ASSERT_THAT(first->Step(), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState state, first->State());
  std::vector<double> losses;
  for (int step = 0; step < 3; ++step) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep done, first->Step());
    losses.push_back(done.loss);
  }
  for (const Grid& grid : {Grid{2, 2, 2}, Grid{4, 2, 1}, Grid{1, 1, 1}, Grid{1, 8, 1}}) {
    SCOPED_TRACE(Text(grid));
    TrainingOptions other = OptionsOf("1f1b", grid);
    if (grid.data > 1) other.config.sharding = Sharding::kOptimizer;
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto next, PipelineTraining::Create(graph, *batches_, other));
    ASSERT_THAT(next->SetState(state), IsOk());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState back, next->State());
    ASSERT_EQ(back.tensors.size(), state.tensors.size());
    for (const auto& [key, tensor] : state.tensors) {
      EXPECT_TRUE(back.tensors.at(key).values == tensor.values) << key;
    }
    std::vector<double> again;
    for (int step = 0; step < 3; ++step) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep done, next->Step());
      again.push_back(done.loss);
    }
    const bool same_sums = grid.tensor == 2 && grid.data == 2;
    for (size_t i = 0; i < again.size(); ++i) {
      EXPECT_NEAR(again[i], losses[i],
                  same_sums ? 0 : LossTolerance(3, SplitTerms(graph), losses[0]));
    }
  }
}

// Asynchronous schedules and token slices have nothing to do with how a device computes its layers.
TEST_F(TensorParallelTest, OlderWeightsAndTokenSlices) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/false));
  for (const std::string scheme : {"pipedream", "pipedream_2bw", "terapipe"}) {
    SCOPED_TRACE(scheme);
    TrainingOptions options = OptionsOf(scheme, {2, 1, 1});
    const GridResult whole = Train(graph, options);
    options.config.tensor = 2;
    const GridResult divided = Train(graph, options);
    ASSERT_EQ(divided.losses.size(), whole.losses.size());
    for (size_t i = 0; i < whole.losses.size(); ++i) {
      // Optimizer steps of a run are as many as its micro-batches at most.
      EXPECT_NEAR(
          divided.losses[i], whole.losses[i],
          LossTolerance(kGridSteps * kGridMicroBatches, SplitTerms(graph), whole.losses[0]));
    }
  }
}

// Text whose reader is held up once, in the middle of a step.
class SlowText : public BatchSource {
 public:
  SlowText(const BatchSource* text, int64_t calls, absl::Duration pause)
      : BatchSource(text->fields()), text_(text), pause_(pause), calls_(calls) {}
  void FillIds(int field, int64_t step, int64_t first_sample,
               absl::Span<int32_t> out) const override {
    if (--calls_ == 0) absl::SleepFor(pause_);
    text_->FillIds(field, step, first_sample, out);
  }

 private:
  const BatchSource* const text_;
  const absl::Duration pause_;
  mutable std::atomic<int64_t> calls_;
};

// A member that does not come to a sum ends the run, with the place and the ranks, and what it left
// cannot be continued.
TEST_F(TensorParallelTest, AMemberThatDoesNotComeEndsTheRun) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/false));
  TrainingOptions options = OptionsOf("1f1b", {2, 2, 1});
  options.wait_limit = absl::Milliseconds(300);
  const SlowText slow(batches_.get(), /*calls=*/9, absl::Seconds(1));
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(graph, slow, options));
  EXPECT_THAT(training->Step(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                         AllOf(HasSubstr("device "), HasSubstr("waited"))));
  EXPECT_THAT(training->State(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("failed")));
}

TEST_F(TensorParallelTest, RefusesInOneLine) {
  GptConfig config = DividedGpt(/*tied=*/false);
  config.heads = 4;
  const ModelGraph graph = *BuildGpt(config);
  const auto refusal = [&](int64_t tensor) {
    TrainingOptions options = OptionsOf("1f1b", {2, 1, 1});
    options.config.tensor = tensor;
    return PipelineTraining::Create(graph, *batches_, options).status();
  };
  EXPECT_THAT(refusal(0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("T=0: must be at least 1")));
  EXPECT_THAT(refusal(3),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("T=3: must divide the")));
  EXPECT_THAT(refusal(8), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("T=8: must divide the 4 heads of layer")));
}

}  // namespace
}  // namespace pipelab
