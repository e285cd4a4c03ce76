// Pipelines whose devices are spread over the processes of mpirun and whose gradients come late
// (over_time) or not at all (local, local_replay): losses in every process, and all parameters,
// have the bits of the serial loop. Each number of processes takes the pipelines that it divides.
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/comm/mpi_test_main.h"
#include "kernels/comm/transport.h"
#include "models/data/camera_frames.h"
#include "pipelines/runtime/training.h"
#include "tests/replay_loop.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"

namespace pipelab {
namespace {

// Trains over the processes, where they can share the devices.
void ExpectSpreadAsSerial(const ModelGraph& graph, const BatchSource& data, TrainingOptions options,
                          int steps) {
  if (options.config.pipeline % TestTransport().processes()->size() != 0) return;
  options.transport = &TestTransport();
  options.wait_limit = absl::Seconds(60);
  EXPECT_EQ(ExpectAsSerial(graph, data, options, steps).size(), static_cast<size_t>(steps));
}

// They learn from 500 samples of text, and from 500 frames.
TEST(MpiLateGradients, FollowTheDelayLaw) {
  const auto text = SmallText();
  const ModelGraph gpt = SmallGpt(/*tied=*/false), chain = SmallChain();
  const FrameStream frames = SyntheticFrames(/*frames=*/501, /*height=*/6, /*width=*/8);
  const NextFrameSource images(&frames);
  for (int devices : {2, 3, 4, 8}) {
    ExpectSpreadAsSerial(gpt, *text, SmallTraining("over_time", devices, 500), /*steps=*/1);
    ExpectSpreadAsSerial(chain, images, SmallTraining("over_time", devices, 500), /*steps=*/1);
  }
}

TEST(MpiLateGradients, NoneOfStagesThatLearnLocally) {
  const auto text = SmallText();
  const ModelGraph gpt = SmallGpt(/*tied=*/false);
  for (int devices : {2, 3, 4, 8}) {
    for (int micro_batches : {1, 2, 4, 8, 16}) {
      ExpectSpreadAsSerial(gpt, *text, SmallTraining("local", devices, micro_batches),
                           /*steps=*/2);
    }
    TrainingOptions no_flush = SmallTraining("local", devices, 16);
    no_flush.config.update_interval = 4;
    ExpectSpreadAsSerial(gpt, *text, no_flush, /*steps=*/2);
  }
}

// Nor are outputs read in order, where stages run passes of their own numbers.
TEST(MpiLateGradients, NorOfStagesAtAPaceOfTheirOwn) {
  const auto text = SmallText();
  const ModelGraph gpt = SmallGpt(/*tied=*/false);
  for (const std::vector<int32_t>& passes :
       {std::vector<int32_t>{4, 8}, {8, 4, 8}, {8, 2, 6, 4}, {2, 8, 4, 8}}) {
    SchemeParams sizes{static_cast<int>(passes.size()), /*micro_batches=*/8};
    if (sizes.devices % TestTransport().processes()->size() != 0) continue;
    sizes.micro_batches_of_stage = passes;
    sizes.group_size = 3;
    sizes.update_interval = 2;
    TrainingOptions options = SmallReplay(sizes);
    options.transport = &TestTransport();
    options.wait_limit = absl::Seconds(60);
    ExpectAsReplayLoop(gpt, *text, options, /*every=*/2, /*steps=*/2);
  }
}

}  // namespace
}  // namespace pipelab
