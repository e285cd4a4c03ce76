#include <algorithm>

#include "gtest/gtest.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

// ZB-H2 as drawn in the paper: 4 devices, 8 micro-batches. The skew is all that is left.
TEST(ZbH2, PaperFigure) {
  EXPECT_EQ(Timeline(MakeOrDie("zb_h2", {4, 8})), R"(
 0 1 2 3 4 5 6'0.0 7'1.1'2.2'3.3'4.4'5.5'6.6'7.7      |
   0 1 2 3 4'0 5'1 6'2.0 7'3.1'4.2'5.3'6.4'7.5.6.7    |
     0 1 2'0 3'1 4'2 5'3 6'4.0 7'5.1'6.2'7.3.4.5.6.7  |
       0'0 1'1 2'2 3'3 4'4 5'5 6'6.0 7'7.1.2.3.4.5.6.7|
)");
  EXPECT_EQ(Picture("zb_h2", {3, 5}), R"(
0: 0F0 0F1 0F2 0F3 0F4 0I0 0W0 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4
1: 1F0 1F1 1F2 1I0 1F3 1I1 1F4 1I2 1W0 1I3 1W1 1I4 1W2 1W3 1W4
2: 2F0 2I0 2F1 2I1 2F2 2I2 2F3 2I3 2F4 2I4 2W0 2W1 2W2 2W3 2W4
)");
}

// (P-1)(F+I-2W) = 0 idle inside a device's span for M >= 2P-1, when the warm-up can be filled; with
// fewer micro-batches the first device waits for its first input gradient. The makespan keeps the
// skew, and every device holds min(M, 2P-1) activations.
TEST(ZbH2, ClosedForms) {
  for (int p = 1; p <= 16; ++p) {
    for (int m = 1; m <= 8 * p; ++m) {
      const UnitFigures f = Figures(MakeOrDie("zb_h2", {p, m}));
      ASSERT_EQ(f.busy, 3 * m);
      ASSERT_EQ(f.makespan, m >= p ? 3 * m + p - 1 : 2 * p - 1 + 2 * m) << p << " " << m;
      ASSERT_EQ(f.span[0], std::max(3 * m, 2 * p - 1 + 2 * m)) << p << " " << m;
      for (int d = 0; d < p; ++d) {
        ASSERT_EQ(f.peak[d], std::min(m, 2 * p - 1)) << p << " " << m << " " << d;
        if (m >= 2 * p - 1) {
          ASSERT_EQ(f.span[d], 3 * m) << p << " " << m << " " << d;
        }
      }
    }
  }
}

TEST(ZbH2, Refuses) {
  EXPECT_EQ(Refusal("zb_h2", {2, 2, 3}),
            "zb_h2 --virtual_stages=3: this scheme holds one stage per device; use "
            "--virtual_stages=1");
}

}  // namespace
}  // namespace pipelab
