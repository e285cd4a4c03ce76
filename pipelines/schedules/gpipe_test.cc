#include <vector>

#include "gtest/gtest.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

// The paper's figure 2(c): 4 devices, 4 micro-batches; backwards in micro-batch order (gpipe.cc
// says why).
TEST(GPipe, PaperFigure) {
  EXPECT_EQ(Picture("gpipe", {4, 4}), R"(
0: 0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3
1: 1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3
2: 2F0 2F1 2F2 2F3 2B0 2B1 2B2 2B3
3: 3F0 3F1 3F2 3F3 3B0 3B1 3B2 3B3
)");
  EXPECT_EQ(Timeline(MakeOrDie("gpipe", {4, 4})), R"(
 0 1 2 3            '0'1'2'3|
   0 1 2 3        '0'1'2'3  |
     0 1 2 3    '0'1'2'3    |
       0 1 2 3'0'1'2'3      |
)");
}

// Bubble (P-1)/(M+P-1), also for M < P, and all M activations at the peak.
TEST(GPipe, ClosedForms) {
  for (int p = 1; p <= 16; ++p) {
    for (int m = 1; m <= 4 * p; ++m) {
      const UnitFigures f = Figures(MakeOrDie("gpipe", {p, m}));
      ASSERT_EQ(f.busy, 3 * m);
      ASSERT_EQ(f.idle, 3 * (p - 1)) << p << " " << m;
      ASSERT_EQ(f.peak, std::vector<int64_t>(p, m)) << p << " " << m;
    }
  }
}

// Re-materialisation: one more forward a backward, and one activation at a time.
TEST(GPipe, Recompute) {
  SchemeParams params{2, 2};
  params.recompute = true;
  EXPECT_EQ(Picture("gpipe", params), R"(
0: 0F0 0F1 0R0 0B0 0R1 0B1
1: 1F0 1F1 1R0 1B0 1R1 1B1
)");
  for (int p : {1, 2, 4, 7}) {
    for (int m : {1, 3, 8}) {
      params.devices = p;
      params.micro_batches = m;
      const UnitFigures f = Figures(MakeOrDie("gpipe", params));
      EXPECT_EQ(f.busy, 4 * m);
      // A stage rebuilds while the gradient is on its way to it, so the bubble does not grow.
      EXPECT_EQ(f.idle, 3 * (p - 1));
      EXPECT_EQ(f.peak, std::vector<int64_t>(p, 1));
    }
  }
}

TEST(GPipe, Refuses) {
  SchemeParams params{2, 2};
  params.virtual_stages = 2;
  EXPECT_EQ(Refusal("gpipe", params),
            "gpipe --virtual_stages=2: this scheme holds one stage per device; use "
            "--virtual_stages=1");
}

}  // namespace
}  // namespace pipelab
