#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/schedules/scheme_testing.h"

namespace pipelab {
namespace {

// The paper's figure 3: 4 devices, 4 micro-batches, F = B; 0 and 1 go down, 2 and 3 up.
TEST(Chimera, PaperFigure) {
  EXPECT_EQ(Picture("chimera", {4, 4}), R"(
0: 0F0 0F1 3F2 3B2 3F3 3B3 0B0 0B1
1: 1F0 2F2 1F1 2F3 2B2 1B0 2B3 1B1
2: 1F2 2F0 1F3 2F1 2B0 1B2 2B1 1B3
3: 0F2 0F3 3F0 3B0 3F1 3B1 0B2 0B3
)");
  EXPECT_EQ(Timeline(MakeOrDie("chimera", {4, 4})), R"(
 0 1   2'2 3'3'0  '1|
   0 2 1 3'2'0'3'1  |
   2 0 3 1'0'2'1'3  |
 2 3   0'0 1'1'2  '3|
)");
}

// Idle (P-2)(k+1) with M = kP (F = 1, B = 2), by direct concatenation.
TEST(Chimera, IdleOfWholeUnits) {
  for (int p = 2; p <= 16; p += 2) {
    for (int k = 1; k <= 8; ++k) {
      const UnitFigures f = Figures(MakeOrDie("chimera", {p, k * p}));
      ASSERT_EQ(f.busy, 3 * k * p);
      ASSERT_EQ(f.idle, (p - 2) * (k + 1)) << p << " " << k;
    }
  }
}

// Activations of one unit: from P/2 + 1 at the ends to P in the middle.
TEST(Chimera, PeakActivations) {
  for (int p = 2; p <= 16; p += 2) {
    const UnitFigures f = Figures(MakeOrDie("chimera", {p, p}));
    for (int d = 0; d < p; ++d) {
      const int from_end = std::min(d, p - 1 - d);
      ASSERT_EQ(f.peak[d], p / 2 + 1 + from_end) << p << " " << d;
    }
  }
}

// No micro-batch is dropped and none collides, where other generators fail: P = 2 with M > 2, P >=
// 6 with M >= 3P, and short units. MakeSchedule's result is lowered, hence validated, and does all
// the work.
TEST(Chimera, ServesEveryEvenCount) {
  for (int p = 2; p <= 12; p += 2) {
    for (int m = 2; m <= 5 * p + 2; m += 2) {
      const Schedule s = MakeOrDie("chimera", {p, m});
      ASSERT_EQ(Figures(s).busy, 3 * m) << p << " " << m;
      int up = 0;
      for (int replica : s.placement.replica_of_micro_batch) up += replica;
      ASSERT_EQ(up, m / 2);
    }
  }
}

TEST(Chimera, Refuses) {
  EXPECT_EQ(
      Refusal("chimera", {3, 4}),
      "--scheme=chimera --devices=3: must be even (the two directions take turns on a device); "
      "nearest: 2 or 4");
  EXPECT_EQ(
      Refusal("chimera", {1, 4}),
      "--scheme=chimera --devices=1: must be even (the two directions take turns on a device); "
      "nearest: 2");
  EXPECT_EQ(Refusal("chimera", {4, 5}),
            "--scheme=chimera --micro_batches=5: must be even (half of them go each way); nearest: "
            "4 or 6");
  SchemeParams params{4, 4};
  params.chunks = 2;
  EXPECT_EQ(Refusal("chimera", params),
            "--scheme=chimera --chunks=2: this scheme holds one stage a device; use --chunks=1");
}

}  // namespace
}  // namespace pipelab
