#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

// The paper's figure, 4 devices and 4 micro-batches: 0 and 1 go down, 2 and 3 up.
TEST(BitPipe, PaperFigure) {
  EXPECT_EQ(Picture("bitpipe", {4, 4}), R"(
0: 0F0 0F1 3F2 4F2 3F3 4F3 7F0 7B0 7F1 7B1 4B2 3B2 4B3 3B3 0B0 0B1
1: 1F0 2F2 1F1 2F3 5F2 6F0 5F3 6F1 6B0 5B2 6B1 5B3 2B2 1B0 2B3 1B1
2: 1F2 2F0 1F3 2F1 5F0 6F2 5F1 6F3 6B2 5B0 6B3 5B1 2B0 1B2 2B1 1B3
3: 0F2 0F3 3F0 4F0 3F1 4F1 7F2 7B2 7F3 7B3 4B0 3B0 4B1 3B1 0B2 0B3
)");
  EXPECT_EQ(Timeline(MakeOrDie("bitpipe", {4, 4})), R"(
 0 1   2 2 3 3 0'0 1'1'2'2'3'3'0  '1|
   0 2 1 3 2 0 3 1'0'2'1'3'2'0'3'1  |
   2 0 3 1 0 2 1 3'2'0'3'1'0'2'1'3  |
 2 3   0 0 1 1 2'2 3'3'0'0'1'1'2  '3|
)");
}

// The authors' forward order by device, in their numbers: a micro-batch m in the second half of the
// model is m + 4.
TEST(BitPipe, AuthorsForwardOrder) {
  const Schedule s = MakeOrDie("bitpipe", {4, 4});
  std::vector<std::vector<int>> forwards(4);
  for (int d = 0; d < 4; ++d) {
    for (const Action& a : s.order[d]) {
      if (a.kind == ActionKind::kForward)
        forwards[d].push_back(a.micro_batch + (a.stage < 4 ? 0 : 4));
    }
  }
  EXPECT_EQ(forwards, (std::vector<std::vector<int>>{{0, 1, 2, 6, 3, 7, 4, 5},
                                                     {0, 2, 1, 3, 6, 4, 7, 5},
                                                     {2, 0, 3, 1, 4, 6, 5, 7},
                                                     {2, 3, 0, 4, 1, 5, 6, 7}}));
}

// 3P/2 + min(d, P-1-d) forwards, then 1F1B pairs, then backwards, in a unit.
TEST(BitPipe, WarmUp) {
  for (int p = 2; p <= 16; p += 2) {
    const Schedule s = MakeOrDie("bitpipe", {p, p});
    for (int d = 0; d < p; ++d) {
      const int warm_up = 3 * p / 2 + std::min(d, p - 1 - d);
      std::string kinds, want(warm_up, 'F');
      for (const Action& a : s.order[d]) kinds += KindLetter(a.kind);
      // The first pair's forward ends the run of forwards.
      for (int i = warm_up; i < 2 * p; ++i) want += "FB";
      want.append(warm_up, 'B');
      ASSERT_EQ(kinds, want) << p << " " << d;
    }
  }
}

// In half-stages, M = kP by concatenation: idle (P-2)(k+1) when B = 2F. Peak activations of a unit:
// from 3P/2+1 at the ends to 2P in the middle.
TEST(BitPipe, ClosedForms) {
  for (int p = 2; p <= 16; p += 2) {
    for (int k = 1; k <= 8; ++k) {
      const UnitFigures f = Figures(MakeOrDie("bitpipe", {p, k * p}));
      ASSERT_EQ(f.busy, 6 * k * p);
      ASSERT_EQ(f.idle, (p - 2) * (k + 1)) << p << " " << k;
      if (k > 1) continue;
      for (int d = 0; d < p; ++d) {
        ASSERT_EQ(f.peak[d], 3 * p / 2 + 1 + std::min(d, p - 1 - d)) << p << " " << d;
      }
    }
  }
}

// B = F: bubble (P-2)/(4M+P-2) for every M = kP. A timeline's length is its makespan, two
// characters a slot, and a frame.
TEST(BitPipe, IdleOfEqualPasses) {
  for (int p = 2; p <= 8; p += 2) {
    for (int k = 1; k <= 4; ++k) {
      const std::string timeline = Timeline(MakeOrDie("bitpipe", {p, k * p}));
      ASSERT_EQ(timeline.find('|'), 1 + 2 * (4 * k * p + p - 2)) << p << " " << k;
    }
  }
}

TEST(BitPipe, ServesEveryEvenCount) {
  for (int p = 2; p <= 12; p += 2) {
    for (int m = 2; m <= 5 * p + 2; m += 2) {
      const Schedule s = MakeOrDie("bitpipe", {p, m});
      ASSERT_EQ(Figures(s).busy, 6 * m) << p << " " << m;
      int up = 0;
      for (int replica : s.placement.replica_of_micro_batch) up += replica;
      ASSERT_EQ(up, m / 2);
    }
  }
}

TEST(BitPipe, Refuses) {
  EXPECT_EQ(Refusal("bitpipe", {5, 4}),
            "bitpipe --devices=5: must be even (the two directions take turns on a device); "
            "nearest: 4 or 6");
  EXPECT_EQ(Refusal("bitpipe", {4, 1}),
            "bitpipe --micro_batches=1: must be even (half of them go each way); "
            "nearest: 2");
  EXPECT_EQ(Refusal("bitpipe", {4, 4, 1}),
            "bitpipe --virtual_stages=1: this scheme holds two stages per device, a V; use "
            "--virtual_stages=2");
}

}  // namespace
}  // namespace pipelab
