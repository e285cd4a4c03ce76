#include "pipelines/sim/memory_levels.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/sim_testing.h"
#include "tests/support/test_schedules.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;

// A forward keeps 100 and needs 500 above; a backward needs 900; edges have 1000.
TEST(MemoryLevels, AreThoseOfTheWalk) {
  const Program p = LowerOrDie(ChainOf(1, {"0F0 0B0", "1F0 1B0"}), /*step=*/false);
  CostTable costs = Costs(p.schedule);
  for (StageCost& stage : costs.stages) {
    stage.memory = StageMemory();
    stage.memory.kept = Bytes(100);
    stage.memory.forward_peak = Bytes(500);
    stage.memory.backward_peak = Bytes(900);
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  std::vector<std::pair<int64_t, int64_t>> points;
  const auto levels = MemoryLevels(p, costs, trace);
  for (const MemoryPoint& m : levels[0]) {
    points.push_back({m.time_ns, m.parts.total().value()});
  }
  // 0F0 runs to 100 and its output is sent; the gradient's receive is posted at once. 1F0 and 1B0
  // take 300; 0B0 runs from 400 to 600.
  EXPECT_EQ(points, (std::vector<std::pair<int64_t, int64_t>>{
                        {0, 500}, {100, 1100}, {100, 100}, {100, 1100}, {400, 2000}, {600, 0}}));
}

std::string Text(const MemoryParts& m) {
  return absl::StrCat(m.state.weights.value(), " ", m.state.gradients.value(), " ",
                      m.state.optimizer.value(), " ", m.state.older_weights.value(), " | ",
                      m.kept.value(), " ", m.messages.value(), " ", m.action.value());
}

std::vector<std::string> Texts(const std::vector<MemoryPoint>& points) {
  std::vector<std::string> texts;
  for (const MemoryPoint& p : points) texts.push_back(absl::StrCat(p.time_ns, ": ", Text(p.parts)));
  return texts;
}

void SetMemory(CostTable* costs) {
  for (StageCost& stage : costs->stages) {
    stage.memory = StageMemory();
    stage.memory.kept = Bytes(100);
    stage.memory.forward_peak = Bytes(1500);
    stage.memory.backward_peak = Bytes(900);
    stage.memory.state = Bytes(3 + 40 + 40 + 80);
    stage.memory.statistics = Bytes(3);
    stage.memory.weights = stage.memory.gradients = Bytes(40);
    stage.memory.optimizer = Bytes(80);
  }
}

// Weights, gradients, the optimizer's, older weights | kept, messages, running action.
TEST(MemoryLevels, PartsOfASynchronousStep) {
  const Program p = LowerOrDie(ChainOf(1, {"0F0 0B0", "1F0 1B0"}), /*step=*/false);
  CostTable costs = Costs(p.schedule);
  SetMemory(&costs);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  const auto levels = MemoryLevels(p, costs, trace);
  // The output waits until it is sent; then the receive of its gradient is posted.
  EXPECT_THAT(Texts(levels[0]),
              ElementsAre("0: 40 40 80 0 | 0 0 1500", "100: 40 40 80 0 | 100 1000 0",
                          "100: 40 40 80 0 | 100 0 0", "100: 40 40 80 0 | 100 1000 0",
                          "400: 40 40 80 0 | 100 1000 900", "600: 40 40 80 0 | 0 0 0"));
  // The input that was waited for is kept from the end of the forward on, and is the gradient that
  // is sent in the end.
  EXPECT_THAT(Texts(levels[1]),
              ElementsAre("0: 40 40 80 0 | 0 0 0", "0: 40 40 80 0 | 0 1000 0",
                          "100: 40 40 80 0 | 0 1000 1500", "200: 40 40 80 0 | 1100 0 0",
                          "200: 40 40 80 0 | 1100 0 900", "400: 40 40 80 0 | 0 1000 0",
                          "400: 40 40 80 0 | 0 0 0"));
  const std::vector<MemoryPeak> peaks = PeakMemory(p, costs);
  EXPECT_EQ(Text(peaks[0].parts), "40 40 80 0 | 100 1000 900");
  EXPECT_EQ(ToString(p.instructions[0][peaks[0].instruction].action), "0B0");
  EXPECT_EQ(Text(peaks[1].parts), "40 40 80 0 | 0 1000 1500");
  EXPECT_EQ(ToString(p.instructions[1][peaks[1].instruction].action), "1F0");
  EXPECT_EQ(peaks[1].parts.state.statistics, Bytes(3));
  EXPECT_EQ(peaks[1].parts.total(), Bytes(163 + 2500));
}

// A step keeps the weights that micro-batch 1 still needs, until its backward is over.
TEST(MemoryLevels, OlderWeightsOfAnAsynchronousSchedule) {
  const Program p = LowerOrDie(ChainOf(2, {"0F0 0F1 0B0 0S@1 0B1 0S@2"}));
  CostTable costs = Costs(p.schedule);
  SetMemory(&costs);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  EXPECT_THAT(Texts(MemoryLevels(p, costs, trace)[0]),
              ElementsAre("0: 40 40 80 0 | 0 0 1500", "100: 40 40 80 0 | 100 0 0",
                          "100: 40 40 80 0 | 100 0 1500", "200: 40 40 80 0 | 200 0 0",
                          "200: 40 40 80 0 | 200 0 900", "400: 40 40 80 0 | 100 0 0",
                          "400: 40 40 80 40 | 100 0 0", "410: 40 40 80 40 | 100 0 900",
                          "610: 40 40 80 0 | 0 0 0"));
  // The state is at its highest later than the activations are.
  EXPECT_EQ(trace.devices[0].peak_state, Bytes(163 + 40));
  EXPECT_EQ(trace.devices[0].peak_activation, Bytes(1600));
  EXPECT_EQ(PeakMemory(p, costs)[0].parts.total(), Bytes(163 + 1600));
}

// Two devices share both stages: halves of everything, and whole weights and gradients in a run.
TEST(MemoryLevels, GatheredParametersAndARunsGradients) {
  LoweringOptions options;
  options.sharding = Sharding::kFully;
  const Program p =
      Lower(*MakeSchedule("gpipe", {.devices = 1, .micro_batches = 1, .data_parallel = 2}), options)
          .value();
  CostTable costs = Costs(p.schedule);
  SetMemory(&costs);
  costs.hop_latency = Nanoseconds(10);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
  // Gathered in the ring's 10 ns and released after the last action; the sum of the gradients takes
  // as long.
  EXPECT_THAT(
      Texts(MemoryLevels(p, costs, trace)[0]),
      ElementsAre("0: 60 20 40 0 | 0 0 0", "10: 60 20 40 0 | 0 0 1500", "60: 60 20 40 0 | 100 0 0",
                  "60: 60 60 40 0 | 100 0 900", "160: 60 60 40 0 | 0 0 0",
                  "160: 20 60 40 0 | 0 0 0", "170: 20 20 40 0 | 0 0 0"));
}

TEST(MemoryLevels, PeakAndEndAreThoseOfTheTrace) {
  uint64_t seed = 0;
  for (const RandomShape& shape : Shapes()) {
    const Program p = LowerOrDie(RandomOrder(shape, ++seed));
    CostTable costs = Costs(p.schedule);
    for (Bytes& b : costs.edge_bytes) b = Bytes(1200);
    for (StageCost& stage : costs.stages) {
      stage.memory.kept = stage.memory.kept_for_weight = Bytes(1200);
      stage.memory.backward_peak = Bytes(3600);
    }
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(p, costs));
    const auto levels = MemoryLevels(p, costs, trace);
    for (size_t d = 0; d < levels.size(); ++d) {
      Bytes peak;
      for (size_t i = 0; i < levels[d].size(); ++i) {
        peak = std::max(peak, levels[d][i].parts.activation());
        EXPECT_GE(levels[d][i].time_ns, i == 0 ? 0 : levels[d][i - 1].time_ns);
      }
      EXPECT_EQ(peak, trace.devices[d].peak_activation) << seed << " " << d;
      ASSERT_FALSE(levels[d].empty());
      EXPECT_EQ(levels[d].back().parts.activation(), Bytes(0)) << seed << " " << d;
    }
  }
}

}  // namespace
}  // namespace pipelab
