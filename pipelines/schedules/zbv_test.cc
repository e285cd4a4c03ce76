#include <algorithm>

#include "gtest/gtest.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

// The smallest V without gaps: 2 devices, 3 micro-batches; and 4 devices, 8 micro-batches as in the
// paper's figure (F plain, I after a quote, W after a dot; both stages of a device in one line).
TEST(Zbv, PaperFigure) {
  EXPECT_EQ(Picture("zbv", {2, 3}), R"(
0: 0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 0I1 3W2 0I2 0W1 0W2
1: 1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 1I1 2I2 1I2 2W1 1W1 2W2 1W2
)");
  EXPECT_EQ(Timeline(MakeOrDie("zbv", {4, 8})), R"(
 0 1 2 3 4 5 6 0'0.0 1'1.1 2'2.2 3'3.3 7'0.0 4'4.4'1.1 5'5.5'2.2 6'6.6'3.3 7'7'4.7'5.4'6.5'7.6.7      |
   0 1 2 3 4 0 5 1'0.0 2'1.1 3'2.2 6'0.0 4'3.3 7'1.1 5'4.4'2.2 6'5.5'3.3 7'6'4'7'5.6'6.4'7.7.5.6.7    |
     0 1 2 0 3 1 4 2'0.0 3'1.1 5'0.0 4'2.2 6'1.1 5'3.3 7'2.2 6'4.4'3.3 7'5'4'6'5'7'6.5'7.4.6.5.7.6.7  |
       0 0 1 1 2 2 3 3'0.0 4'0.0 4'1.1 5'1.1 5'2.2 6'2.2 6'3.3 7'3.3 7'4'4'5'5'6'6'7'7.4.4.5.5.6.6.7.7|
)");
}

// In half-stages (F = I = W = 1): a device has no gap from its first action to its last, for 2P-1
// micro-batches and more; and no schedule can end before 6M+P-1.
TEST(Zbv, NoGaps) {
  for (int p = 1; p <= 16; ++p) {
    for (int m = 2 * p - 1; m <= 8 * p; ++m) {
      const UnitFigures f = Figures(MakeOrDie("zbv", {p, m}));
      ASSERT_EQ(f.busy, 6 * m);
      ASSERT_EQ(f.makespan, 6 * m + p - 1) << p << " " << m;
      for (int d = 0; d < p; ++d) {
        ASSERT_EQ(f.span[d], 6 * m) << p << " " << m << " " << d;
        ASSERT_EQ(f.peak[d], 2 * std::min(m, p)) << p << " " << m << " " << d;
      }
    }
  }
}

// From P micro-batches on the makespan is the same; device d has the gaps that must be, between its
// last forward down and its first forward up.
TEST(Zbv, FewMicroBatches) {
  EXPECT_EQ(Figures(MakeOrDie("zbv", {8, 8})).makespan, 55);
  for (int p = 2; p <= 16; ++p) {
    for (int m = 1; m < 2 * p - 1; ++m) {
      const UnitFigures f = Figures(MakeOrDie("zbv", {p, m}));
      ASSERT_EQ(f.busy, 6 * m);
      for (int d = 0; d < p; ++d) ASSERT_EQ(f.peak[d], 2 * std::min(m, p));
      if (m < p) {
        // A micro-batch needs 4P slots there and back, and its last W one more.
        ASSERT_GE(f.makespan, 4 * p + 1);
        continue;
      }
      ASSERT_EQ(f.makespan, 6 * m + p - 1) << p << " " << m;
      for (int d = 0; d < p; ++d) {
        ASSERT_EQ(f.span[d], 6 * m + std::max(0, 2 * p - 1 - m - d)) << p << " " << m << " " << d;
      }
    }
  }
}

TEST(Zbv, Refuses) {
  EXPECT_EQ(Refusal("zbv", {4, 4, 3}),
            "zbv --virtual_stages=3: this scheme holds two stages per device, a V; use "
            "--virtual_stages=2");
}

}  // namespace
}  // namespace pipelab
