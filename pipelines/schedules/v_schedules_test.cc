#include <algorithm>

#include "gtest/gtest.h"
#include "pipelines/schedules/scheme_testing.h"

namespace pipelab {
namespace {

// The smallest of each: 2 devices, 2 micro-batches.
TEST(VSchedules, SmallestFigures) {
  EXPECT_EQ(Picture("v_half", {2, 2}), R"(
0: 0F0 3F0 0F1 3I0 3W0 3F1 0I0 3I1 0W0 3W1 0I1 0W1
1: 1F0 2F0 1F1 2F1 2I0 1I0 2W0 1W0 2I1 1I1 2W1 1W1
)");
  EXPECT_EQ(Picture("v_min", {2, 2}), R"(
0: 0F0 3F0 3I0 0F1 3W0 0I0 0W0 3F1 3I1 3W1 0I1 0W1
1: 1F0 2F0 2I0 1I0 1F1 2F1 2W0 1W0 2I1 1I1 2W1 1W1
)");
  EXPECT_EQ(Timeline(MakeOrDie("v_half", {4, 4})), R"(
 0 1           0 2'0.0 1 3'1.1 2    '0'2.0 3.2'1'3.1.3'2.2    '3.3|
   0 1       0     2 1'0.0 3 2'1.1'0.0   3'2'1.2.1'3'2.3.2  '3.3  |
     0     0 1     1 2  '0 2.0 3'0'1.0 3.1'1'2.1.2'2'3.2.3'3.3    |
       0 0     1 1     2 2'0'0.0 3.0 3'1'1.1.1'2'2.2.2'3'3.3.3    |
)");
  EXPECT_EQ(Timeline(MakeOrDie("v_min", {4, 4})), R"(
 0 1           0'0 2.0     1'1'0.1 3.0 2'2'1.2.1   3'3'2.3.2      '3.3|
   0         0 1  '0.0   1 2'0'1.0.1 2 3'1'2.1.2 3  '2'3.2.3    '3.3  |
     0     0     1  '0 1.0'0 2.0'1 2.1'1 3.1'2 3.2'2.2  '3.3  '3.3    |
       0 0         1 1'0'0.0.0 2 2'1'1.1.1 3 3'2'2.2.2    '3'3.3.3    |
)");
}

// In half-stages (F = I = W = 1), where 1F1B is idle for 6(P-1) and holds 2P: half of either, but
// for a stage.
TEST(VHalf, ClosedForms) {
  for (int p = 2; p <= 16; ++p) {
    for (int m = p; m <= 8 * p; m += p / 2) {
      const UnitFigures f = Figures(MakeOrDie("v_half", {p, m}));
      ASSERT_EQ(f.busy, 6 * m);
      ASSERT_EQ(f.idle, p % 2 == 0 ? 3 * p - 3 : 3 * p - 4) << p << " " << m;
      ASSERT_EQ(*std::max_element(f.peak.begin(), f.peak.end()), p % 2 == 0 ? p + 2 : p + 1)
          << p << " " << m;
    }
  }
}

// A third of 1F1B's memory, and two; 2/3 of its idle time.
TEST(VMin, ClosedForms) {
  for (int p = 2; p <= 16; ++p) {
    for (int m = p; m <= 8 * p; m += p / 2) {
      const UnitFigures f = Figures(MakeOrDie("v_min", {p, m}));
      ASSERT_EQ(f.busy, 6 * m);
      ASSERT_EQ(f.idle, p % 3 == 0 ? 4 * p - 3 : 4 * p - 5) << p << " " << m;
      ASSERT_EQ(*std::max_element(f.peak.begin(), f.peak.end()),
                std::min(2 * m, 2 * ((p + 1) / 3) + 2))
          << p << " " << m;
    }
  }
  const UnitFigures f = Figures(MakeOrDie("v_min", {8, 16}));
  EXPECT_EQ(*std::max_element(f.peak.begin(), f.peak.end()), 8);
}

// Fewer micro-batches than devices: served, in no more memory.
TEST(VSchedules, FewMicroBatches) {
  for (int p = 1; p <= 16; ++p) {
    for (int m = 1; m < p; ++m) {
      for (const char* name : {"v_half", "v_min"}) {
        const UnitFigures f = Figures(MakeOrDie(name, {p, m}));
        ASSERT_EQ(f.busy, 6 * m);
        for (int64_t peak : f.peak) ASSERT_LE(peak, 2 * m) << name << " " << p << " " << m;
      }
    }
  }
}

TEST(VSchedules, Refuse) {
  EXPECT_EQ(
      Refusal("v_half", {4, 4, 1}),
      "--scheme=v_half --chunks=1: this scheme holds two stages a device, a V; use --chunks=2");
  EXPECT_EQ(
      Refusal("v_min", {4, 4, 4}),
      "--scheme=v_min --chunks=4: this scheme holds two stages a device, a V; use --chunks=2");
}

}  // namespace
}  // namespace pipelab
