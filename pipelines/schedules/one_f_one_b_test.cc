#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

// PipeDream-flush, as drawn in the Megatron-LM paper's figure 4 (top) at 4 devices, 8
// micro-batches, F = B.
TEST(OneFOneB, PaperFigure) {
  EXPECT_EQ(Picture("1f1b", {4, 4}), R"(
0: 0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3
1: 1F0 1F1 1F2 1B0 1F3 1B1 1B2 1B3
2: 2F0 2F1 2B0 2F2 2B1 2F3 2B2 2B3
3: 3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3
)");
  EXPECT_EQ(Timeline(MakeOrDie("1f1b", {4, 8})), R"(
 0 1 2 3      '0 4'1 5'2 6'3 7'4  '5  '6  '7|
   0 1 2    '0 3'1 4'2 5'3 6'4 7'5  '6  '7  |
     0 1  '0 2'1 3'2 4'3 5'4 6'5 7'6  '7    |
       0'0 1'1 2'2 3'3 4'4 5'5 6'6 7'7      |
)");
}

// Bubble (P-1)/(M+P-1), also for M < P; min(M, P - d) activations on device d.
TEST(OneFOneB, ClosedForms) {
  for (int p = 1; p <= 16; ++p) {
    for (int m = 1; m <= 4 * p; ++m) {
      const UnitFigures f = Figures(MakeOrDie("1f1b", {p, m}));
      ASSERT_EQ(f.busy, 3 * m);
      ASSERT_EQ(f.idle, 3 * (p - 1)) << p << " " << m;
      for (int d = 0; d < p; ++d) ASSERT_EQ(f.peak[d], std::min(m, p - d)) << p << " " << m;
    }
  }
}

TEST(OneFOneB, Refuses) {
  SchemeParams params{2, 2};
  params.virtual_stages = 3;
  EXPECT_EQ(Refusal("1f1b", params),
            "1f1b --virtual_stages=3: this scheme holds one stage per device; use "
            "--virtual_stages=1");
}

}  // namespace
}  // namespace pipelab
