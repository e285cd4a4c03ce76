#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/schedules/scheme_testing.h"

namespace pipelab {
namespace {

// The Megatron-LM paper's figure 4 (bottom) is 4 devices, 8 micro-batches, 2 chunks; its first
// device, and a whole schedule of half the size.
TEST(Interleaved, PaperFigure) {
  EXPECT_EQ(Picture("interleaved", {2, 2}), R"(
0: 0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1
1: 1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1
)");
  const std::string picture = Picture("interleaved", {4, 8});
  EXPECT_EQ(picture.substr(0, picture.find("1: ")), R"(
0: 0F0 0F1 0F2 0F3 4F0 4F1 4F2 4F3 0F4 0F5 0F6 4B0 0F7 4B1 4F4 4B2 4F5 4B3 4F6 0B0 4F7 0B1 0B2 0B3 4B4 4B5 4B6 4B7 0B4 0B5 0B6 0B7
)");
}

// 1 - VM/((V-1) max(M,P) + M + P - 1), here with M a multiple of P: idle 3(P-1) of stage length,
// and min(VM, (V-1)P + 2(P-1-d) + 1) activations.
TEST(Interleaved, ClosedForms) {
  for (int p = 1; p <= 16; ++p) {
    for (int v = 2; v <= 4; ++v) {
      for (int m = p; m <= 8 * p; m += p) {
        const UnitFigures f = Figures(MakeOrDie("interleaved", {p, m, v}));
        ASSERT_EQ(f.busy, 3 * v * m);
        ASSERT_EQ(f.idle, 3 * (p - 1)) << p << " " << m << " " << v;
        for (int d = 0; d < p; ++d) {
          ASSERT_EQ(f.peak[d], std::min(v * m, (v - 1) * p + 2 * (p - 1 - d) + 1)) << p << " " << m;
        }
      }
    }
  }
}

TEST(Interleaved, WithOneChunkIs1F1B) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 12; ++m) {
      EXPECT_EQ(Picture("interleaved", {p, m, 1}), Picture("1f1b", {p, m}));
    }
  }
}

TEST(Interleaved, Refuses) {
  EXPECT_EQ(
      Refusal("interleaved", {4, 6}),
      "--scheme=interleaved --micro_batches=6: must be a multiple of --devices=4; nearest: 4 or 8");
  EXPECT_EQ(
      Refusal("interleaved", {4, 3}),
      "--scheme=interleaved --micro_batches=3: must be a multiple of --devices=4; nearest: 4");
}

}  // namespace
}  // namespace pipelab
