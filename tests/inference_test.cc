// A pipeline of forwards alone: losses are those of the serial loop that evaluates the same weights
// on the same rows; the weights do not change; and a device has the weights and what a forward
// needs, nothing else, however long the stream is.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_devices.h"
#include "kernels/cuda/devices.h"
#include "models/data/camera_frames.h"
#include "models/layers/serial_trainer.h"
#include "models/layers/test_images.h"
#include "models/layers/test_layers.h"
#include "models/layers/test_nets.h"
#include "pipelines/runtime/training.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

class Inference : public testing::Test {
 protected:
  // Three steps each way, of weights that some training has left.
  static void Compare(const ModelGraph& graph, const BatchSource& data,
                      const TrainingOptions& options) {
    SCOPED_TRACE(testing::Message() << graph.name << ", " << Describe(options));
    const int micro_batches = options.config.micro_batches;
    const auto on = (options.devices ? options.devices : CpuDevices())(1);
    ASSERT_THAT(on, IsOk());
    Arena arena(on->front().memory);
    const std::unique_ptr<Backend> backend = on->front().make_backend(&arena);
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        auto serial, SerialTrainer::Create(graph, backend.get(), SmallSerial(data, micro_batches)));
    ASSERT_THAT(serial->Step(), IsOk());
    const TrainingState trained = serial->State();
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto pipeline, PipelineTraining::Create(graph, data, options));
    ASSERT_THAT(pipeline->SetState(trained), IsOk());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState before, pipeline->State());
    for (int64_t step = trained.step; step < trained.step + 3; ++step) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep done, pipeline->Step());
      const int64_t rows = options.config.micro_batch_size;
      const int64_t parts = micro_batches * options.config.data;
      double loss = 0;
      for (int64_t part = 0; part < parts; ++part) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(const double mean,
                                     serial->Evaluate(data, step, part * rows, rows));
        loss += mean / static_cast<double>(parts);
      }
      EXPECT_NEAR(done.loss, loss, 1e-14 * loss) << "step " << step;
    }
    PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState after, pipeline->State());
    EXPECT_EQ(after.step, trained.step + 3);
    for (const auto& [key, tensor] : after.tensors) {
      EXPECT_TRUE(tensor.values == before.tensors.at(key).values) << key << " has changed";
      if (options.devices) continue;  // which has narrower values
      EXPECT_TRUE(tensor.values == trained.tensors.at(key).values) << key << " is another's";
    }
  }

  static TrainingOptions Options(int devices, int micro_batches) {
    return SmallTraining("over_time_inference", devices, micro_batches);
  }

  const FrameStream frames_ = SyntheticFrames(/*frames=*/501, /*height=*/6, /*width=*/8);
  const NextFrameSource images_{&frames_};
  const std::unique_ptr<BatchSource> text_ = SmallText();
};

TEST_F(Inference, EqualsEvaluation) {
  const ModelGraph chain = SmallChain();
  for (int devices : {1, 2, 3, 4, 8}) {
    for (int micro_batches : {1, 4, 12}) {
      Compare(chain, images_, Options(devices, micro_batches));
      Compare(SmallGpt(/*tied=*/false), *text_, Options(devices, micro_batches));
    }
    Compare(SmallGpt(/*tied=*/true), *text_, Options(devices, 4));
  }
}

// Running statistics, dropout, padded keys; groups of devices, which have rows each; bfloat16.
TEST_F(Inference, OfOtherNetworks) {
  std::vector<ModelGraph> nets = SmallNets(/*dropout=*/0.1, Activation::kRelu);
  nets.push_back(SmallAmoebaNet().graph);
  nets.push_back(SmallResNet().graph);
  for (const ModelGraph& net : nets) {
    const RandomData data(TestFieldsOf(net));
    Compare(net, data, Options(3, 4));
    TrainingOptions groups = Options(2, 4);
    groups.config.data = 2;
    groups.config.micro_batch_size = kSmallSamples / 2;
    Compare(net, data, groups);
  }
  gpu::DeviceOptions bfloat16;
  bfloat16.format.activations = DataType::kBFloat16;
  TrainingOptions narrow = Options(3, 4);
  narrow.devices = gpu::CudaDevices("emulated", bfloat16);
  Compare(SmallGpt(/*tied=*/true), *text_, narrow);
}

// Without dropout, to the byte: weights, and one sample at a time.
TEST_F(Inference, MemoryIsAsPredicted) {
  const ModelGraph chain = SmallChain();
  for (int devices : {1, 2, 3, 4, 8}) {
    std::vector<Bytes> peaks, states;
    for (int samples : {10, 10000}) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(
          auto pipeline, PipelineTraining::Create(chain, images_, Options(devices, samples)));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace predicted,
                                   Simulate(pipeline->program(), pipeline->costs()));
      for (const DeviceTrace& d : predicted.devices) peaks.push_back(d.peak_activation);
      if (samples > 10) continue;
      EXPECT_EQ(LossesAsPredicted(pipeline.get(), 2).size(), size_t{2});
      Bytes state;
      for (const DeviceTrace& d : predicted.devices) state += d.peak_state;
      EXPECT_EQ(state, Bytes(4 * chain.num_parameters()));
    }
    EXPECT_TRUE(std::equal(peaks.begin(), peaks.begin() + devices, peaks.begin() + devices));
  }
}

// The optimizer of a training is not asked for; another model's weights are refused.
TEST_F(Inference, RefusesOtherWeights) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto pipeline,
                               PipelineTraining::Create(SmallChain(), images_, Options(2, 4)));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      auto gpt, PipelineTraining::Create(SmallGpt(/*tied=*/false), *text_, Options(2, 4)));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState state, gpt->State());
  EXPECT_THAT(pipeline->SetState(state),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("of the model")));
}

}  // namespace
}  // namespace pipelab
