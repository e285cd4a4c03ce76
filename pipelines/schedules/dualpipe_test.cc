#include <algorithm>
#include <cstdint>

#include "glog/logging.h"
#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/atomic_pairs.h"
#include "pipelines/ir/program.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

// Makespan at F = 1, B = 2, I = W = 1 when an F and the full B right after it run as one.
int64_t MakespanOfAtomicPairs(const Schedule& schedule) {
  absl::StatusOr<Program> program = Lower(schedule, {});
  CHECK(program.ok()) << program.status();
  PairForwardBackward(&*program);
  const absl::StatusOr<Trace> trace = Simulate(*program, CostTable::Unit(schedule, Nanoseconds(1)));
  CHECK(trace.ok()) << trace.status();
  return trace->makespan.value();
}

// The smallest one with all its phases: 4 devices, 8 micro-batches; 0 to 3 go down, 4 to 7 up.
TEST(DualPipe, SmallestFigure) {
  EXPECT_EQ(Picture("dualpipe", {4, 8}), R"(
0: 0F0 0F1 0F2 3F4 3I4 3W4 3F5 0F3 3B5 3F6 0B0 3B6 3F7 0B1 3B7 0I2 0W2 0I3 0W3
1: 1F0 2F4 1F1 2F5 1F2 2B4 2F6 1B0 1F3 2B5 2F7 1B1 2B6 1B2 2I7 1I3 2W7 1W3
2: 1F4 2F0 1F5 2F1 1F6 2B0 2F2 1B4 1F7 2B1 2F3 1B5 2B2 1B6 2I3 1I7 2W3 1W7
3: 0F4 0F5 0F6 3F0 3I0 3W0 3F1 0F7 3B1 3F2 0B4 3B2 3F3 0B5 3B3 0I6 0W6 0I7 0W7
)");
  EXPECT_EQ(Timeline(MakeOrDie("dualpipe", {4, 8})), R"(
 0 1 2 4'4.4 5 3'5'5 6'0'0'6'6 7  '1'1'7'7'2.2'3.3|
   0 4 1 5 2'4'4 6'0'0 3'5'5 7'1'1'6'6'2'2'7'3.7.3|
   4 0 5 1 6'0'0 2'4'4 7'1'1 3'5'5'2'2'6'6'3'7.3.7|
 4 5 6 0'0.0 1 7'1'1 2'4'4'2'2 3  '5'5'3'3'6.6'7.7|
)");
}

// (P/2-1)(F&B + B - 3W) with F&B = 3, B = 2, W = 1, and P+1 activations. Without the pairs, where
// an action waits for its own inputs only, half of that.
TEST(DualPipe, ClosedForms) {
  for (int p = 2; p <= 16; p += 2) {
    for (int m = 2 * p; m <= 8 * p; m += 2) {
      const Schedule s = MakeOrDie("dualpipe", {p, m});
      const UnitFigures f = Figures(s);
      ASSERT_EQ(f.busy, 3 * m);
      ASSERT_EQ(MakespanOfAtomicPairs(s) - f.busy, (p / 2 - 1) * (3 + 2 - 3)) << p << " " << m;
      ASSERT_EQ(f.idle, p / 2 - 1) << p << " " << m;
      for (int d = 0; d < p; ++d) ASSERT_EQ(f.peak[d], p + 1) << p << " " << m << " " << d;
    }
  }
}

// Where the published order does not reach: as little idle time, in as much memory.
TEST(DualPipe, FewMicroBatches) {
  for (int p = 2; p <= 16; p += 2) {
    for (int m = 2; m < 2 * p; m += 2) {
      const UnitFigures f = Figures(MakeOrDie("dualpipe", {p, m}));
      ASSERT_EQ(f.busy, 3 * m);
      if (m >= p) {
        ASSERT_EQ(f.idle, p / 2 - 1) << p << " " << m;
      }
      for (int d = 0; d < p; ++d) ASSERT_EQ(f.peak[d], std::min(m, p + 1)) << p << " " << m;
    }
  }
}

TEST(DualPipe, Refuses) {
  EXPECT_EQ(Refusal("dualpipe", {3, 6}),
            "dualpipe --devices=3: must be even (the two directions take turns on a device); "
            "nearest: 2 or 4");
  EXPECT_EQ(Refusal("dualpipe", {2, 5}),
            "dualpipe --micro_batches=5: must be even (half of them go each way); "
            "nearest: 4 or 6");
  EXPECT_EQ(Refusal("dualpipe", {2, 4, 2}),
            "dualpipe --virtual_stages=2: this scheme holds one stage per device; use "
            "--virtual_stages=1");
}

TEST(DualPipeV, SmallestFigure) {
  EXPECT_EQ(Picture("dualpipev", {2, 4}), R"(
0: 0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3 3B1 3F2 0B0 3B2 3F3 0B1 3B3 0I2 0W2 0I3 0W3
1: 1F0 2F0 1F1 2F1 1F2 2B0 2F2 1B0 1F3 2B1 2F3 1B1 2B2 1B2 2I3 1I3 2W3 1W3
)");
}

// DualPipe's with twice the devices: idle 2(P-1) half-stages with pairs, P-1 without; 2P+1 stages.
TEST(DualPipeV, ClosedForms) {
  for (int p = 1; p <= 16; ++p) {
    for (int m = 2 * p; m <= 8 * p; m += (p + 1) / 2) {
      const Schedule s = MakeOrDie("dualpipev", {p, m});
      const UnitFigures f = Figures(s);
      ASSERT_EQ(f.busy, 6 * m);
      ASSERT_EQ(MakespanOfAtomicPairs(s) - f.busy, 2 * (p - 1)) << p << " " << m;
      ASSERT_EQ(f.idle, p - 1) << p << " " << m;
      for (int d = 0; d < p; ++d) ASSERT_EQ(f.peak[d], 2 * p + 1) << p << " " << m << " " << d;
    }
  }
}

TEST(DualPipeV, FewMicroBatches) {
  for (int p = 1; p <= 16; ++p) {
    for (int m = 1; m < 2 * p; ++m) {
      const UnitFigures f = Figures(MakeOrDie("dualpipev", {p, m}));
      ASSERT_EQ(f.busy, 6 * m);
      if (m >= p) {
        ASSERT_EQ(f.idle, p - 1) << p << " " << m;
      }
      for (int d = 0; d < p; ++d) ASSERT_EQ(f.peak[d], std::min(2 * m, 2 * p + 1)) << p << " " << m;
    }
  }
}

TEST(DualPipeV, Refuses) {
  EXPECT_EQ(Refusal("dualpipev", {4, 8, 1}),
            "dualpipev --virtual_stages=1: this scheme holds two stages per device, a V; "
            "use --virtual_stages=2");
}

}  // namespace
}  // namespace pipelab
