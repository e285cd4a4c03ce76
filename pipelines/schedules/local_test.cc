#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/versions.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/scheme_testing.h"
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

// Steps in the order change no pass, and every pass has the newest weights.
TEST(Local, WithoutAFlush) {
  SchemeParams sizes{2, 4};
  sizes.update_interval = 2;
  EXPECT_EQ(Picture("local", sizes), R"(
0: 0F0 0B0 0F1 0B1 0S@1 0F2@1 0B2@1 0F3@1 0B3@1 0S@2
1: 1F0 1B0 1F1 1B1 1S@1 1F2@1 1B2@1 1F3@1 1B3@1 1S@2
)");
  EXPECT_EQ(LiveVersions(MakeOrDie("local", sizes)), std::vector<int>({1, 1}));
}

// One device with all stages is the serial local-learning loop; several go round.
TEST(Local, SeveralStagesPerDevice) {
  EXPECT_EQ(Picture("local", {1, 2, 3}), R"(
0: 0F0 0B0 1F0 1B0 2F0 2B0 0F1 0B1 1F1 1B1 2F1 2B1
)");
  EXPECT_EQ(Timeline(MakeOrDie("local", {2, 4, 2})), R"(
 0'0 1'1 0'0 1'1 2'2 3'3 2'2 3'3  |
   0'0 1'1 0'0 1'1 2'2 3'3 2'2 3'3|
)");
}

TEST(Local, Refuses) {
  SchemeParams sizes{2, 10};
  sizes.update_interval = 4;
  EXPECT_EQ(Refusal("local", sizes),
            "local --micro_batches=10: this scheme updates after every 4 micro-batches "
            "(--update_interval); nearest: 8 or 12");
  sizes.update_interval = -1;
  EXPECT_EQ(Refusal("local", sizes),
            "local --update_interval=-1: must be at least 1, or 0 for one step behind all "
            "micro-batches");
}

}  // namespace
}  // namespace pipelab
