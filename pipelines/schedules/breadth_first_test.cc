#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

TEST(BreadthFirst, PaperFigure) {
  EXPECT_EQ(Picture("breadth_first", {2, 3}), R"(
0: 0F0 0F1 0F2 2F0 2F1 2F2 2B0 2B1 2B2 0B0 0B1 0B2
1: 1F0 1F1 1F2 3F0 3F1 3F2 3B0 3B1 3B2 1B0 1B1 1B2
)");
  // The paper's placement: stage s on device s mod P.
  const Schedule s = MakeOrDie("breadth_first", {4, 4, 4});
  for (int stage = 0; stage < 16; ++stage) EXPECT_EQ(s.Group(stage, 0)[0], stage % 4);
}

// 1 - VM/((V-1) max(M,P) + M + P - 1), and all VM activations.
TEST(BreadthFirst, ClosedForms) {
  for (int p = 1; p <= 16; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int m = 1; m <= 3 * p; ++m) {
        const UnitFigures f = Figures(MakeOrDie("breadth_first", {p, m, v}));
        ASSERT_EQ(f.busy, 3 * v * m);
        ASSERT_EQ(f.makespan, 3 * ((v - 1) * std::max(m, p) + m + p - 1))
            << p << " " << m << " " << v;
        ASSERT_EQ(f.peak, std::vector<int64_t>(p, v * m));
      }
    }
  }
}

}  // namespace
}  // namespace pipelab
