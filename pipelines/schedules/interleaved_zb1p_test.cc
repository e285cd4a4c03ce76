#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

TEST(InterleavedZb1p, Picture) {
  EXPECT_EQ(Timeline(MakeOrDie("interleaved_zb1p", {2, 4})), R"(
 0 1 0 1  '0.0 2'1.1 3'0.0 2'1.1 3'2.2'3.3'2.2'3.3|
   0 1 0'0 1'1.0 2'0.1 3'1.0 2'2.1 3'3.2'2.3'3.2.3|
)");
  EXPECT_EQ(Picture("interleaved_zb1p", {2, 2}), R"(
0: 0F0 0F1 2F0 2F1 2I0 2W0 2I1 2W1 0I0 0W0 0I1 0W1
1: 1F0 1F1 3F0 3I0 3F1 3I1 3W0 1I0 3W1 1I1 1W0 1W1
)");
  // Fewer micro-batches than devices: one group.
  EXPECT_EQ(Picture("interleaved_zb1p", {3, 2}), R"(
0: 0F0 0F1 3F0 3F1 3I0 3W0 3I1 3W1 0I0 0W0 0I1 0W1
1: 1F0 1F1 4F0 4F1 4I0 4I1 4W0 1I0 4W1 1I1 1W0 1W1
2: 2F0 2F1 5F0 5I0 5F1 5I1 2I0 5W0 2I1 5W1 2W0 2W1
)");
}

// Bubble (P-1)/(3VM+P-1) for every M >= P, also where P does not divide M; min(VM, (V-1)g+P)
// activations, g the largest group.
TEST(InterleavedZb1p, ClosedForms) {
  for (int p = 2; p <= 16; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int m = p; m <= 8 * p; m += p <= 6 ? 1 : p / 2 + 1) {
        const UnitFigures f = Figures(MakeOrDie("interleaved_zb1p", {p, m, v}));
        ASSERT_EQ(f.busy, 3 * v * m);
        ASSERT_EQ(f.idle, p - 1) << p << " " << m << " " << v;
        const int groups = m / p, g = (m + groups - 1) / groups;
        for (int d = 0; d < p; ++d) {
          ASSERT_EQ(f.peak[d], std::min(v * m, (v - 1) * g + p)) << p << " " << m << " " << v;
        }
      }
    }
  }
}

// With a group size of the user's: 7 is 4 + 3, and no other idle time.
TEST(InterleavedZb1p, GroupSize) {
  SchemeParams params{3, 7};
  params.group_size = 4;
  const Schedule s = MakeOrDie("interleaved_zb1p", params);
  std::string forwards;
  for (const Action& a : s.order[0]) {
    if (a.kind == ActionKind::kForward) forwards += ToString(a) + " ";
  }
  EXPECT_EQ(forwards, "0F0 0F1 0F2 0F3 3F0 3F1 3F2 3F3 0F4 0F5 0F6 3F4 3F5 3F6 ");
  EXPECT_EQ(Figures(s).idle, 2);
  EXPECT_EQ(Figures(s).peak, std::vector<int64_t>(3, 4 + 3));
  params.group_size = 2;
  EXPECT_EQ(Refusal("interleaved_zb1p", params),
            "interleaved_zb1p --group_size=2: a group is back at a device for its next "
            "stage only after all 3 devices; use at least --devices=3");
}

TEST(InterleavedZb1p, WithOneChunkIsZbH1) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 12; ++m) {
      EXPECT_EQ(Picture("interleaved_zb1p", {p, m, 1}), Picture("zb_h1", {p, m}));
    }
  }
}

}  // namespace
}  // namespace pipelab
