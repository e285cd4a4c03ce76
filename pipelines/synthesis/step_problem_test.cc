// A problem and the simulator count the same memory, to the byte: for whole micro-batches and for
// slices, where all of them go to the host and where some do.
#include "pipelines/synthesis/step_problem.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step_model.h"
#include "pipelines/synthesis/problem.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// The least room in which the word fits.
int64_t RoomOf(SynthesisProblem p, const std::vector<Symbol>& word) {
  int64_t less = 0, enough = int64_t{1} << 45;
  while (enough - less > 1) {
    const int64_t middle = less + (enough - less) / 2;
    p.limits.free = {Bytes(middle)};
    (FitsMemory(p, 0, word) ? enough : less) = middle;
  }
  return enough;
}

// A device with one stage has no messages. Everything goes to the host, or the first and last
// forward of a micro-batch.
TEST(StepProblem, RoomIsTheSimulatorsToTheByte) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto on,
                               ModelOnCluster::Load("llama-3-8b", "dgx-h100", "bf16"));
  StepCache cache(on->step());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig config, ParseStepConfig("", "1f1b:P=1,T=8,M=2"));
  for (const int slices : {1, 2, 4}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(SynthesisProblem p,
                                 ProblemOfStep(&cache, config, {0}, {}, true, {}, slices));
    p.may_offload = {true};
    int64_t rooms[2];
    for (const bool all : {false, true}) {
      std::vector<Symbol> word;
      for (int m = 0; m < p.micro_batches; ++m) {
        int sent = 0;
        for (int slice = 0; slice < slices; ++slice) {
          const bool goes = all || slice == 0 || slice == slices - 1;
          word.push_back(SymbolOf(0, goes ? kSentF : kPassF));
          if (goes) word.push_back(SymbolOf(0, kCopyO));
          sent += goes ? 1 : 0;
        }
        for (int n = 0; n < slices; ++n) {
          if (all || n == 0) word.push_back(SymbolOf(0, kCopyL));
          if (!all && n == slices - 1 && sent > 1) word.push_back(SymbolOf(0, kCopyL));
          word.push_back(SymbolOf(0, kPassI));
          word.push_back(SymbolOf(0, kPassW));
        }
      }
      ASSERT_TRUE(IsWordOf(p, 0, word)) << slices;
      PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction step,
                                   PredictOrder(&cache, config, ScheduleOf(p, {word}), {}));
      rooms[all ? 1 : 0] = RoomOf(p, word);
      const DeviceTrace& device = step.trace.devices[0];
      EXPECT_EQ(rooms[all ? 1 : 0], device.peak_activation.value()) << slices << " " << all;
      EXPECT_GT(device.peak_host, Bytes(0));
    }
    if (slices > 2) {
      EXPECT_LT(rooms[1], rooms[0]);
    }
  }
}

}  // namespace
}  // namespace pipelab
