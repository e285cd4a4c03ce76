#include <algorithm>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

// One wave over 4 devices with 4 micro-batches, F = B; and two waves over 2 devices.
TEST(Hanayo, SmallestFigures) {
  EXPECT_EQ(Timeline(MakeOrDie("hanayo", {4, 4})), R"(
 0 1 2 3       0'0 1'1 2'2 3'3'0  '1  '2  '3|
   0 1 2     0 3 1'0 2'1 3'2'0'3'1  '2  '3  |
     0 1   0 2 1 3 2'0 3'1'0'2'1'3'2  '3    |
       0 0 1 1 2 2 3 3'0'0'1'1'2'2'3'3      |
)");
  EXPECT_EQ(Picture("hanayo", {2, 2, 4}), R"(
0: 0F0 0F1 3F0 4F0 3F1 4F1 7F0 7B0 7F1 7B1 4B0 3B0 4B1 3B1 0B0 0B1
1: 1F0 2F0 1F1 2F1 5F0 6F0 5F1 6F1 6B0 5B0 6B1 5B1 2B0 1B0 2B1 1B1
)");
}

// In stages, of which there are V = 2W a device, M = kP by concatenation: idle 2(P-1) when B = F,
// 2(P-1)(k+1) when B = 2F. So W waves divide the bubble by W.
TEST(Hanayo, ClosedForms) {
  for (int p = 1; p <= 16; ++p) {
    for (int v = 2; v <= 6; v += 2) {
      for (int k = 1; k <= 8; ++k) {
        const UnitFigures f = Figures(MakeOrDie("hanayo", {p, k * p, v}));
        ASSERT_EQ(f.busy, 3 * v * k * p);
        ASSERT_EQ(f.idle, 2 * (p - 1) * (k + 1)) << p << " " << v << " " << k;
        // As much as 1F1B's first device.
        ASSERT_EQ(*std::max_element(f.peak.begin(), f.peak.end()), v * p) << p << " " << v;
      }
    }
  }
}

TEST(Hanayo, IdleOfEqualPasses) {
  for (int p = 1; p <= 8; ++p) {
    for (int k = 1; k <= 4; ++k) {
      const std::string timeline = Timeline(MakeOrDie("hanayo", {p, k * p}));
      ASSERT_EQ(timeline.find('|'), 1 + 2 * (4 * k * p + 2 * (p - 1))) << p << " " << k;
    }
  }
}

// Short units too: MakeSchedule's result is lowered, hence validated.
TEST(Hanayo, ServesEveryCount) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 3 * p + 1; ++m) {
      const UnitFigures f = Figures(MakeOrDie("hanayo", {p, m}));
      ASSERT_EQ(f.busy, 6 * m) << p << " " << m;
      for (int64_t peak : f.peak) ASSERT_LE(peak, 2 * std::min(p, m)) << p << " " << m;
    }
  }
}

TEST(Hanayo, Refuses) {
  EXPECT_EQ(Refusal("hanayo", {4, 4, 3}),
            "hanayo --virtual_stages=3: must be even (a wave goes down the devices and up); "
            "nearest: 2 or 4");
}

}  // namespace
}  // namespace pipelab
