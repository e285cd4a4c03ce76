#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/scheme_testing.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(Local, Picture) {
  EXPECT_EQ(Picture("local", {3, 3}), R"(
0: 0F0 0B0 0F1 0B1 0F2 0B2
1: 1F0 1B0 1F1 1B1 1F2 1B2
2: 2F0 2B0 2F1 2B1 2F2 2B2
)");
  EXPECT_EQ(Timeline(MakeOrDie("local", {4, 4})), R"(
 0'0 1'1 2'2 3'3      |
   0'0 1'1 2'2 3'3    |
     0'0 1'1 2'2 3'3  |
       0'0 1'1 2'2 3'3|
)");
}

// (P - 1) f + M (f + a + b), to the nanosecond, the last of the stages' heads being as dear as the
// others'; one micro-batch in flight; an activation a boundary and micro-batch, and no gradient.
TEST(Local, ClosedForms) {
  constexpr int64_t kForward = 7, kHead = 3, kInput = 5, kWeight = 11;
  for (int p = 1; p <= 16; ++p) {
    for (int m = 1; m <= 8 * p; ++m) {
      const Schedule s = MakeOrDie("local", {p, m});
      CostTable costs = CostTable::Unit(s);
      for (StageCost& stage : costs.stages) {
        stage.forward = Nanoseconds(kForward);
        stage.backward_input = Nanoseconds(kHead + kInput);
        stage.backward_weight = Nanoseconds(kWeight);
      }
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(s, {}));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(program, costs));
      ASSERT_EQ(trace.makespan.value(),
                (p - 1) * kForward + m * (kForward + kHead + kInput + kWeight))
          << p << " " << m;
      ASSERT_EQ(program.messages.size(), (p - 1) * m);
      for (const Message& message : program.messages) ASSERT_FALSE(message.gradient);
      ASSERT_EQ(Figures(s).peak, std::vector<int64_t>(p, 1)) << p << " " << m;
    }
  }
}

TEST(Local, Refuses) {
  EXPECT_EQ(Refusal("local", {2, 2, 3}),
            "local --virtual_stages=3: this scheme holds one stage per device; use "
            "--virtual_stages=1");
}

}  // namespace
}  // namespace pipelab
