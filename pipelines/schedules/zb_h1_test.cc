#include <algorithm>

#include "gtest/gtest.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

// ZB-H1 as drawn in the paper: 4 devices, 8 micro-batches.
TEST(ZbH1, PaperFigure) {
  EXPECT_EQ(Timeline(MakeOrDie("zb_h1", {4, 8})), R"(
 0 1 2 3      '0.0 4'1.1 5'2.2 6'3.3 7'4.4'5.5'6.6'7.7|
   0 1 2    '0 3'1.0 4'2.1 5'3.2 6'4.3 7'5.4'6.5'7.6.7|
     0 1  '0 2'1 3'2.0 4'3.1 5'4.2 6'5.3 7'6.4'7.5.6.7|
       0'0 1'1 2'2 3'3.0 4'4.1 5'5.2 6'6.3 7'7.4.5.6.7|
)");
  EXPECT_EQ(Picture("zb_h1", {4, 4}), R"(
0: 0F0 0F1 0F2 0F3 0I0 0W0 0I1 0W1 0I2 0W2 0I3 0W3
1: 1F0 1F1 1F2 1I0 1F3 1I1 1W0 1I2 1W1 1I3 1W2 1W3
2: 2F0 2F1 2I0 2F2 2I1 2F3 2I2 2W0 2I3 2W1 2W2 2W3
3: 3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3W0 3W1 3W2 3W3
)");
}

// Bubble (P-1)/(3M+P-1) for M >= P, with min(M, P) activations on every device. With fewer
// micro-batches a round trip and M pairs of I and W remain, and no order is faster.
TEST(ZbH1, ClosedForms) {
  for (int p = 1; p <= 16; ++p) {
    for (int m = 1; m <= 8 * p; ++m) {
      const UnitFigures f = Figures(MakeOrDie("zb_h1", {p, m}));
      ASSERT_EQ(f.busy, 3 * m);
      ASSERT_EQ(f.makespan, m >= p ? 3 * m + p - 1 : 2 * p - 1 + 2 * m) << p << " " << m;
      for (int d = 0; d < p; ++d) ASSERT_EQ(f.peak[d], std::min(m, p)) << p << " " << m;
    }
  }
}

TEST(ZbH1, Refuses) {
  EXPECT_EQ(Refusal("zb_h1", {2, 2, 3}),
            "zb_h1 --virtual_stages=3: this scheme holds one stage per device; use "
            "--virtual_stages=1");
}

}  // namespace
}  // namespace pipelab
