// The global norm of a pipeline's gradients, against the gradients themselves; where it costs
// nothing and where there is none.
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/serial_trainer.h"
#include "pipelines/runtime/training.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

// An infinite limit computes the norm and leaves the training as it is.
TEST(GradientNorm, IsSeenWithoutClipping) {
  const std::unique_ptr<BatchSource> batches = SmallText();
  const ModelGraph graph = SmallGpt(/*tied=*/true);
  TrainingOptions options = SmallTraining("1f1b", 4, 4);
  std::vector<double> losses[2], norms;
  for (bool norm : {false, true}) {
    options.optimizer.clip_norm = norm ? std::numeric_limits<double>::infinity() : 0;
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(graph, *batches, options));
    for (int step = 0; step < 3; ++step) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep done, training->Step());
      losses[norm].push_back(done.loss);
      if (norm) norms.push_back(done.gradient_norm);
    }
  }
  EXPECT_EQ(losses[0], losses[1]);
  // Against the gradients themselves, in double.
  SerialOptions serial;
  serial.num_micro_batches = 4;
  serial.micro_batch_size = kSmallSamples;
  serial.data = batches.get();
  serial.optimizer = SmallAdam();
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto trainer, SerialTrainer::Create(graph, backend.get(), serial));
  for (double norm : norms) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const auto gradients, trainer->LossGradients());
    double squares = 0;
    for (const auto& [name, gradient] : gradients) {
      for (float g : gradient) squares += double{g} * double{g};
    }
    EXPECT_NEAR(norm, std::sqrt(squares), 1e-7 * norm);  // a float's rounding a value
    ASSERT_THAT(trainer->Step(), IsOk());
  }
}

TEST(GradientNorm, OneDeviceSendsNothing) {
  const std::unique_ptr<BatchSource> batches = SmallText();
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  TrainingOptions options = SmallTraining("1f1b", 1, 2);
  options.optimizer.clip_norm = 0.5;
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(graph, *batches, options));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep step, training->Step());
  EXPECT_GT(step.gradient_norm, 0.5);
  EXPECT_EQ(step.trace.devices[0].collective_bytes, Bytes(0));
  EXPECT_EQ(step.trace.devices[0].bytes_sent, Bytes(0));
}

// Steps that do not wait for one another never have all gradients; without clipping every optimizer
// serves them, its state and the older weights being as predicted.
TEST(GradientNorm, AsynchronousSchemesHaveNone) {
  const std::unique_ptr<BatchSource> batches = SmallText();
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  TrainingOptions options = SmallTraining("pipedream", 2, 4);
  options.optimizer.clip_norm = 1;
  EXPECT_THAT(PipelineTraining::Create(graph, *batches, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--clip_norm: the global norm needs all gradients")));
  SgdOptions sgd;
  sgd.learning_rate = 0.02f;
  RmsPropOptions rmsprop;
  rmsprop.learning_rate = 1e-3f;
  for (const OptimizerOptions& optimizer :
       {OptimizerOptions::Sgd(sgd), OptimizerOptions::RmsProp(rmsprop)}) {
    options.optimizer = optimizer;
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(graph, *batches, options));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace predicted,
                                 Simulate(training->program(), training->costs()));
    std::vector<double> losses;
    for (int step = 0; step < 8; ++step) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep done, training->Step());
      losses.push_back(done.loss);
      for (size_t d = 0; d < done.trace.devices.size(); ++d) {
        EXPECT_EQ(done.trace.devices[d].peak_state, predicted.devices[d].peak_state) << d;
      }
    }
    EXPECT_LT(losses.back(), losses.front()) << OptimizerToString(optimizer);
  }
}

}  // namespace
}  // namespace pipelab
