// Stages that learn locally, each at a pace of its own (scheme local_replay), train as a plain loop
// over the stages does: losses and parameters are the same bits, memory and traffic as predicted.
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/runtime/training.h"
#include "tests/replay_loop.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"

namespace pipelab {
namespace {

TEST(LocalReplay, TrainsAsALoopOverStages) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  const auto data = SmallText();
  for (int devices : {2, 3, 4}) {
    for (int micro_batches : {1, 2, 4, 8}) {
      for (int slow = 0; slow < devices; ++slow) {
        for (int every : {0, 1}) {
          SchemeParams sizes{devices, micro_batches};
          sizes.group_size = 3;
          sizes.update_interval = every;
          sizes.recompute = slow == 1;
          sizes.micro_batches_of_stage.assign(devices, micro_batches);
          sizes.micro_batches_of_stage[slow] = (micro_batches + 1) / 2;
          ExpectAsReplayLoop(graph, *data, SmallReplay(sizes), every, /*steps=*/3);
        }
      }
    }
  }
}

// Several numbers at once, and steps behind several passes.
TEST(LocalReplay, OfAnyNumbersOfPasses) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  const auto data = SmallText();
  for (const std::vector<int32_t>& passes :
       {std::vector<int32_t>{8, 2, 6, 4}, {2, 8, 4, 8}, {8, 8, 2, 2}}) {
    for (int window : {1, 2, 8}) {
      SchemeParams sizes{4, 8};
      sizes.micro_batches_of_stage = passes;
      sizes.group_size = window;
      sizes.update_interval = 2;
      TrainingOptions options = SmallReplay(sizes);
      options.rendezvous = window == 2;
      ExpectAsReplayLoop(graph, *data, options, /*every=*/2, /*steps=*/2);
    }
  }
}

// With equal numbers of passes it is `local`, which is the serial local-learning loop.
TEST(LocalReplay, EqualPassesAreLocal) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  const auto data = SmallText();
  for (int every : {0, 4}) {
    TrainingOptions options = SmallTraining("local_replay", 3, 8);
    options.config.update_interval = every;
    EXPECT_EQ(ExpectAsSerial(graph, *data, options, /*steps=*/3).size(), 3u);
  }
}

}  // namespace
}  // namespace pipelab
