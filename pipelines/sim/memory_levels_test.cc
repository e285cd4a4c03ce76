#include "pipelines/sim/memory_levels.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/ir/test_schedules.h"
#include "pipelines/sim/sim_testing.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

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
    points.push_back({m.time_ns, m.level.value()});
  }
  // 0F0 runs to 100 and its output is sent; the gradient's receive is posted at once. 1F0 and 1B0
  // take 300; 0B0 runs from 400 to 600.
  EXPECT_EQ(points, (std::vector<std::pair<int64_t, int64_t>>{
                        {0, 500}, {100, 1100}, {100, 100}, {100, 1100}, {400, 2000}, {600, 0}}));
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
        peak = std::max(peak, levels[d][i].level);
        EXPECT_GE(levels[d][i].time_ns, i == 0 ? 0 : levels[d][i - 1].time_ns);
      }
      EXPECT_EQ(peak, trace.devices[d].peak_activation) << seed << " " << d;
      ASSERT_FALSE(levels[d].empty());
      EXPECT_EQ(levels[d].back().level, Bytes(0)) << seed << " " << d;
    }
  }
}

}  // namespace
}  // namespace pipelab
