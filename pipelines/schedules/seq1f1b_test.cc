#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/schedules/catalog.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

TEST(Seq1F1B, Picture) {
  EXPECT_EQ(Picture("seq1f1b", SlicedSizes(2, 2, 2)), R"(
0: 0F0 0F0.1 0F1 0B0.1 0F1.1 0B0 0B1.1 0B1
1: 1F0 1F0.1 1B0.1 1F1 1B0 1F1.1 1B1.1 1B1
)");
  EXPECT_EQ(Picture("zb_seq1f1b", SlicedSizes(2, 2, 2)), R"(
0: 0F0 0F0.1 0F1 0I0.1 0W0.1 0F1.1 0I0 0W0 0I1.1 0W1.1 0I1 0W1
1: 1F0 1F0.1 1I0.1 1F1 1I0 1W0.1 1F1.1 1I1.1 1W0 1I1 1W1.1 1W1
)");
  // A group of one micro-batch has two slices for two devices.
  EXPECT_EQ(Picture("interleaved_seq1f1b", SlicedSizes(2, 1, 2, 2)), R"(
0: 0F0 0F0.1 2F0 2F0.1 2B0.1 2B0 0B0.1 0B0
1: 1F0 1F0.1 3F0 3F0.1 3B0.1 3B0 1B0.1 1B0
)");
}

TEST(Seq1F1B, WithOneSliceIsThePlainScheme) {
  for (int p : {1, 2, 3, 4}) {
    for (int m : {1, 3, 8}) {
      EXPECT_EQ(Picture("seq1f1b", SlicedSizes(p, m, 1)), Picture("1f1b", {p, m}));
      EXPECT_EQ(Picture("zb_seq1f1b", SlicedSizes(p, m, 1)), Picture("zb_h1", {p, m}));
      EXPECT_EQ(Picture("interleaved_seq1f1b", SlicedSizes(p, m, 1, 2)),
                Picture("interleaved", {p, m, 2}));
    }
  }
}

// In units of a slice of a stage. The paper's bubble, and its P + S - 1 slices on the first device.
TEST(Seq1F1B, ClosedForms) {
  for (int p : {1, 2, 3, 4, 8}) {
    for (int m : {1, 2, 5, 16}) {
      for (int slices : {1, 2, 3, 4, 7}) {
        const UnitFigures f = Figures(MakeOrDie("seq1f1b", SlicedSizes(p, m, slices)));
        EXPECT_EQ(f.busy, 3 * slices * m);
        EXPECT_EQ(f.idle, 3 * (p - 1)) << p << " " << m << " " << slices;
        for (int r = 0; r < p; ++r) {
          EXPECT_EQ(f.peak[r], std::min(slices * m, p - r + slices - 1))
              << p << " " << m << " " << r;
        }
      }
    }
  }
}

TEST(Seq1F1B, InterleavedHasItsShareOfTheBubble) {
  for (int p : {2, 3, 4, 8}) {
    for (int slices : {1, 2, 4, 8}) {
      const int group = (p + slices - 1) / slices;  // micro-batches
      for (int v : {2, 3}) {
        for (int m : {group, 2 * group, 5 * group}) {
          SchemeParams sizes = SlicedSizes(p, m, slices, v);
          const UnitFigures f = Figures(MakeOrDie("interleaved_seq1f1b", sizes));
          EXPECT_EQ(f.busy, 3 * v * slices * m);
          EXPECT_EQ(f.idle, 3 * (p - 1)) << p << " " << m << " " << slices << " " << v;
          for (int r = 0; r < p; ++r) {
            EXPECT_EQ(f.peak[r],
                      std::min(v * slices * m, (v - 1) * group * slices + 2 * (p - 1 - r) + slices))
                << p << " " << m << " " << slices << " " << v << " " << r;
          }
        }
      }
    }
  }
}

// SlimPipe's figure for its order: 1 + 2 (P - 1) / (S V) micro-batches on the first device.
TEST(Seq1F1B, InterleavedPeakIsSlimPipes) {
  const int p = 8, slices = 32, v = 2;
  const UnitFigures f = Figures(MakeOrDie("interleaved_seq1f1b", SlicedSizes(p, 4, slices, v)));
  EXPECT_DOUBLE_EQ(static_cast<double>(f.peak[0]) / (slices * v), 1 + 2.0 * (p - 1) / (slices * v));
}

TEST(Seq1F1B, ZeroBubbleFormHasZbH1sBubble) {
  for (int p : {1, 2, 3, 4, 8}) {
    for (int slices : {1, 2, 4}) {
      for (int m : {p, 2 * p, 5 * p}) {
        const UnitFigures f = Figures(MakeOrDie("zb_seq1f1b", SlicedSizes(p, m, slices)));
        EXPECT_EQ(f.idle, p - 1) << p << " " << m << " " << slices;
        EXPECT_LE(*std::max_element(f.peak.begin(), f.peak.end()), p + slices - 1);
      }
    }
  }
}

TEST(Seq1F1B, GroupsHaveAsManySlicesAsDevices) {
  SchemeParams params = SlicedSizes(8, 8, 2, 2);
  params.group_size = 3;  // of 6 slices, for 8 devices
  EXPECT_EQ(
      Refusal("interleaved_seq1f1b", params),
      "interleaved_seq1f1b --group_size=3: a group's slices are back at a device for its next "
      "stage only after all 8 devices; use at least 4 micro-batches of 2 slices");
  params.group_size = 4;
  EXPECT_EQ(Figures(MakeOrDie("interleaved_seq1f1b", params)).idle, 3 * 7);
}

}  // namespace
}  // namespace pipelab
