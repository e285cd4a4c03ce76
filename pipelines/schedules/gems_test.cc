#include <vector>

#include "gtest/gtest.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

// As Chimera's paper (SC 2021, figure 2) draws GEMS: the next forward, up the devices, follows the
// backward that comes down from the last one.
TEST(Gems, PaperFigure) {
  EXPECT_EQ(Picture("gems", {4, 4}), R"(
0: 0F0 0B0 3F1 3B1 0F2 0B2 3F3 3B3
1: 1F0 1B0 2F1 2B1 1F2 1B2 2F3 2B3
2: 2F0 2B0 1F1 1B1 2F2 2B2 1F3 1B3
3: 3F0 3B0 0F1 0B1 3F2 3B2 0F3 0B3
)");
  EXPECT_EQ(Timeline(MakeOrDie("gems", {4, 2})), R"(
 0            '0 1'1      |
   0        '0 1    '1    |
     0    '0 1        '1  |
       0'0 1            '1|
)");
}

// (P-1)(2M+1) idle of 3M of work: the paper's table has a bubble of (P-1) / (P + 1/2).
TEST(Gems, BubbleAndActivations) {
  for (int p = 2; p <= 10; p += 2) {
    for (int m = 2; m <= 12; ++m) {
      const UnitFigures f = Figures(MakeOrDie("gems", {p, m}));
      ASSERT_EQ(f.busy, 3 * m);
      ASSERT_EQ(f.idle, (p - 1) * (2 * m + 1)) << p << " " << m;
      ASSERT_EQ(f.peak, std::vector<int64_t>(p, 1)) << p << " " << m;
    }
  }
  const UnitFigures f = Figures(MakeOrDie("gems", {8, 2000}));
  EXPECT_NEAR(static_cast<double>(f.idle) / static_cast<double>(f.makespan), 7 / 8.5, 1e-3);
}

TEST(Gems, NeedsEvenDevicesAndTwoMicroBatches) {
  EXPECT_EQ(Refusal("gems", {4, 1}),
            "gems --micro_batches=1: each of the two replicas takes one; use at least 2");
  EXPECT_EQ(Refusal("gems", {3, 4}),
            "gems --devices=3: must be even (else both copies of a stage are on one device); "
            "nearest: 2 or 4");
}

}  // namespace
}  // namespace pipelab
