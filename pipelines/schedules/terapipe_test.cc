#include <algorithm>
#include <cstdint>
#include <vector>

#include "glog/logging.h"
#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

TEST(TeraPipe, Picture) {
  EXPECT_EQ(Picture("terapipe", SlicedSizes(2, 2, 3)), R"(
0: 0F0 0F0.1 0F0.2 0F1 0F1.1 0F1.2 0B0.2 0B0.1 0B0 0B1.2 0B1.1 0B1
1: 1F0 1F0.1 1F0.2 1F1 1F1.1 1F1.2 1B0.2 1B0.1 1B0 1B1.2 1B1.1 1B1
)");
  // The paper's figure 2(d): one micro-batch in four slices on four stages; then their backwards.
  EXPECT_EQ(Timeline(MakeOrDie("terapipe", {4, 1})), R"(
 0 1 2 3            '3'2'1'0|
   0 1 2 3        '3'2'1'0  |
     0 1 2 3    '3'2'1'0    |
       0 1 2 3'3'2'1'0      |
)");
}

// Slices of equal times: bubble (P - 1) / (M S + P - 1), all M S slices held at the peak. In units
// of a slice.
TEST(TeraPipe, ClosedForms) {
  for (int p : {1, 2, 3, 4, 8}) {
    for (int m : {1, 2, 5}) {
      for (int slices : {0, 1, 2, 3, 7}) {
        const UnitFigures f = Figures(MakeOrDie("terapipe", SlicedSizes(p, m, slices)));
        const int items = m * (slices == 0 ? 4 : slices);
        EXPECT_EQ(f.busy, 3 * items);
        EXPECT_EQ(f.idle, 3 * (p - 1)) << p << " " << m << " " << slices;
        EXPECT_EQ(f.peak, std::vector<int64_t>(p, items));
      }
    }
  }
}

// The paper's formula for slices of any times, in each direction: sum t_i + (K - 1) max t_j.
TEST(TeraPipe, UnequalSlicesFollowThePapersFormula) {
  const std::vector<std::vector<int64_t>> slicings = {
      {10, 10, 10}, {1, 2, 3, 4}, {40, 30, 20, 9, 1}, {1, 100}, {100, 1}, {7, 50, 7}};
  for (int p : {1, 2, 4, 7}) {
    for (int m : {1, 3}) {
      for (const std::vector<int64_t>& forward : slicings) {
        const int n = static_cast<int>(forward.size());
        const auto program = Lower(MakeOrDie("terapipe", SlicedSizes(p, m, n)), {});
        CHECK(program.ok()) << program.status();
        CostTable costs = CostTable::Unit(program->schedule);
        int64_t sum = 0, most_forward = 0, most_backward = 0;
        for (int i = 0; i < n; ++i) {
          StageCost stage;
          stage.forward = Nanoseconds(forward[i]);
          stage.backward_input = Nanoseconds(2 * forward[i]);
          stage.backward_weight = Nanoseconds(5 + i);
          const int64_t backward = 2 * forward[i] + 5 + i;
          costs.slices.push_back({std::vector<StageCost>(p, stage), costs.edge_bytes});
          sum += m * (forward[i] + backward);
          most_forward = std::max(most_forward, forward[i]);
          most_backward = std::max(most_backward, backward);
        }
        const auto trace = Simulate(*program, costs);
        CHECK(trace.ok()) << trace.status();
        EXPECT_EQ(trace->makespan.value(), sum + (p - 1) * (most_forward + most_backward))
            << p << " stages, " << m << " micro-batches, " << n << " slices";
      }
    }
  }
}

TEST(TeraPipe, Recompute) {
  SchemeParams params = SlicedSizes(2, 1, 2);
  params.recompute = true;
  EXPECT_EQ(Picture("terapipe", params), R"(
0: 0F0 0F0.1 0R0.1 0B0.1 0R0 0B0
1: 1F0 1F0.1 1R0.1 1B0.1 1R0 1B0
)");
}

TEST(TeraPipe, Refuses) {
  SchemeParams params{2, 2};
  params.virtual_stages = 2;
  EXPECT_EQ(Refusal("terapipe", params),
            "terapipe --virtual_stages=2: this scheme holds one stage per device; use "
            "--virtual_stages=1");
  EXPECT_EQ(
      Refusal("terapipe", SlicedSizes(2, 2, -1)),
      "--slices=-1: a micro-batch has 1 to 32767 token slices (0 means the scheme's default)");
  EXPECT_EQ(Refusal("terapipe", SlicedSizes(2, 2, 32768)),
            "--slices=32768: a micro-batch has 1 to 32767 token slices (0 means the scheme's "
            "default)");
}

}  // namespace
}  // namespace pipelab
