#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/scheme_testing.h"

namespace pipelab {
namespace {

// The paper's figure 3: 4 devices, 4 micro-batches, F = B; 0 and 1 go down, 2 and 3 up.
TEST(Chimera, PaperFigure) {
  EXPECT_EQ(Picture("chimera", {4, 4}), R"(
0: 0F0 0F1 3F2 3B2 3F3 3B3 0B0 0B1
1: 1F0 2F2 1F1 2F3 2B2 1B0 2B3 1B1
2: 1F2 2F0 1F3 2F1 2B0 1B2 2B1 1B3
3: 0F2 0F3 3F0 3B0 3F1 3B1 0B2 0B3
)");
  EXPECT_EQ(Timeline(MakeOrDie("chimera", {4, 4})), R"(
 0 1   2'2 3'3'0  '1|
   0 2 1 3'2'0'3'1  |
   2 0 3 1'0'2'1'3  |
 2 3   0'0 1'1'2  '3|
)");
}

// Idle (P-2)(k+1) with M = kP (F = 1, B = 2), by direct concatenation.
TEST(Chimera, IdleOfWholeUnits) {
  for (int p = 2; p <= 16; p += 2) {
    for (int k = 1; k <= 8; ++k) {
      const UnitFigures f = Figures(MakeOrDie("chimera", {p, k * p}));
      ASSERT_EQ(f.busy, 3 * k * p);
      ASSERT_EQ(f.idle, (p - 2) * (k + 1)) << p << " " << k;
    }
  }
}

// Activations of one unit: from P/2 + 1 at the ends to P in the middle.
TEST(Chimera, PeakActivations) {
  for (int p = 2; p <= 16; p += 2) {
    const UnitFigures f = Figures(MakeOrDie("chimera", {p, p}));
    for (int d = 0; d < p; ++d) {
      const int from_end = std::min(d, p - 1 - d);
      ASSERT_EQ(f.peak[d], p / 2 + 1 + from_end) << p << " " << d;
    }
  }
}

// No micro-batch is dropped and none collides, where other generators fail: P = 2 with M > 2, P >=
// 6 with M >= 3P, short units, odd numbers. MakeSchedule's result is lowered, hence validated, and
// does all the work.
TEST(Chimera, ServesEveryCount) {
  for (int p = 2; p <= 12; p += 2) {
    for (int m = 2; m <= 5 * p + 2; ++m) {
      const Schedule s = MakeOrDie("chimera", {p, m});
      ASSERT_EQ(Figures(s).busy, 3 * m) << p << " " << m;
      int up = 0;
      for (int replica : s.placement.replica_of_micro_batch) up += replica;
      ASSERT_EQ(up, m / 2);
    }
  }
}

SchemeParams WithReplicas(int devices, int micro_batches, int replicas) {
  SchemeParams params{devices, micro_batches};
  params.replicas = replicas;
  return params;
}

SchemeParams Doubled(int devices, int micro_batches) {
  SchemeParams params{devices, micro_batches};
  params.concatenation = Concatenation::kForwardDoubling;
  return params;
}

SchemeParams Halved(int devices, int micro_batches) {
  SchemeParams params{devices, micro_batches};
  params.concatenation = Concatenation::kBackwardHalving;
  return params;
}

// The paper's figure of 8 devices and 4 replicas: 0 and 1, 4 and 5 go down, the others up.
TEST(Chimera, FourReplicas) {
  EXPECT_EQ(Timeline(MakeOrDie("chimera", WithReplicas(8, 8, 4))), R"(
 0 1   6 4 7 5 2'2 3'3'4'6'5'7'0  '1|
   0 6 1 7 4 2 5 3'2'4'3'5'6'0'7'1  |
   6 0 7 1 2 4 3 5'4'2'5'3'0'6'1'7  |
 6 7   0 2 1 3 4'4 5'5'2'0'3'1'6  '7|
 4 5   2 0 3 1 6'6 7'7'0'2'1'3'4  '5|
   4 2 5 3 0 6 1 7'6'0'7'1'2'4'3'5  |
   2 4 3 5 6 0 7 1'0'6'1'7'4'2'5'3  |
 2 3   4 6 5 7 0'0 1'1'6'4'7'5'2  '3|
)");
}

// 2f replicas: idle P/f - 2 at F = B for every M = kP, so (P-2f)/(2fM+P-2f) for a unit; activations
// of a unit from P - P/2f + 1 at the ends to P.
TEST(Chimera, ClosedFormsOfReplicas) {
  for (int p : {4, 6, 8, 12, 16}) {
    for (int f = 1; f <= p / 2; ++f) {
      if (p % (2 * f) != 0) continue;
      for (int k = 1; k <= 4; ++k) {
        const Schedule s = MakeOrDie("chimera", WithReplicas(p, k * p, 2 * f));
        ASSERT_EQ(s.placement.num_replicas(), 2 * f);
        ASSERT_EQ(Timeline(s).find('|'), size_t(1 + 2 * (2 * k * p + p / f - 2))) << p << " " << f;
        const UnitFigures figures = Figures(s);
        ASSERT_EQ(figures.busy, 3 * k * p);
        if (k > 1) continue;
        const auto [least, most] = std::minmax_element(figures.peak.begin(), figures.peak.end());
        ASSERT_EQ(*least, p - p / (2 * f) + 1) << p << " " << f;
        ASSERT_EQ(*most, p) << p << " " << f;
      }
    }
  }
}

// An odd number of micro-batches: one more of the last unit goes down than up, and the step takes
// as long as with one more. Figure of 4 devices and 3 micro-batches, 2 goes up.
TEST(Chimera, OddCounts) {
  EXPECT_EQ(Timeline(MakeOrDie("chimera", {4, 3})), R"(
 0 1   2'2    '0  '1|
   0 2 1  '2'0  '1  |
   2 0   1'0'2'1    |
 2     0'0 1'1'2    |
)");
  for (int p = 2; p <= 16; p += 2) {
    for (int m = 3; m <= 5 * p; m += 2) {
      const int64_t makespan = Figures(MakeOrDie("chimera", {p, m})).makespan;
      ASSERT_EQ(makespan, Figures(MakeOrDie("chimera", {p, m + 1})).makespan) << p << " " << m;
      ASSERT_GT(makespan, Figures(MakeOrDie("chimera", {p, m - 1})).makespan) << p << " " << m;
      // The other concatenations: between those of one less and one more.
      for (const auto& with : {&Doubled, &Halved}) {
        const int64_t other = Figures(MakeOrDie("chimera", with(p, m))).makespan;
        ASSERT_GT(other, Figures(MakeOrDie("chimera", with(p, m - 1))).makespan) << p << " " << m;
        ASSERT_LE(other, Figures(MakeOrDie("chimera", with(p, m + 1))).makespan) << p << " " << m;
      }
    }
    // Replicas that do not divide the micro-batches.
    for (int replicas = 4; replicas <= p; replicas += 2) {
      if (p % replicas != 0) continue;
      for (int m = replicas; m <= 3 * p; ++m) {
        ASSERT_EQ(Figures(MakeOrDie("chimera", WithReplicas(p, m, replicas))).busy, 3 * m);
      }
    }
  }
}

TEST(Chimera, ForwardDoubling) {
  EXPECT_EQ(Picture("chimera", Doubled(4, 8)), R"(
0: 0F0 0F1 0F2 0F3 3F4 3F5 3B4 3F6 3F7 3B5 0B0 3B6 0B1 3B7 0B2 0B3
1: 1F0 1F1 2F4 2F5 1F2 1F3 2F6 2F7 2B4 1B0 2B5 1B1 2B6 1B2 2B7 1B3
2: 1F4 1F5 2F0 2F1 1F6 1F7 2F2 2F3 2B0 1B4 2B1 1B5 2B2 1B6 2B3 1B7
3: 0F4 0F5 0F6 0F7 3F0 3F1 3B0 3F2 3F3 3B1 0B4 3B2 0B5 3B3 0B6 0B7
)");
  for (int p = 2; p <= 16; p += 2) {
    for (int k = 1; k <= 4; ++k) {
      const UnitFigures f = Figures(MakeOrDie("chimera", Doubled(p, 2 * k * p)));
      ASSERT_EQ(f.busy, 6 * k * p);
      // However many units; direct concatenation has (p - 2)(2k + 1). With pairs that are one
      // action it would be 2(p - 2): here a pair's first forward may go on before its second.
      ASSERT_EQ(f.idle, 3 * (p - 2) / 2) << p << " " << k;
    }
    for (int m = 2; m <= 4 * p + 2; ++m) {
      ASSERT_EQ(Figures(MakeOrDie("chimera", Doubled(p, m))).busy, 3 * m);
    }
  }
}

// M micro-batches are 2M halves: forwards of one's two halves side by side in one slot, backwards
// of each half in a slot of its own. The order is forward doubling's of 2M.
TEST(Chimera, BackwardHalving) {
  EXPECT_EQ(Picture("chimera", Halved(2, 2)), R"(
0: 0F0 0F1 1F2 1F3 1B2 0B0 1B3 0B1
1: 0F2 0F3 1F0 1F1 1B0 0B2 1B1 0B3
)");
  for (int p = 2; p <= 16; p += 2) {
    for (int m = 2; m <= 4 * p + 2; ++m) {
      const Schedule s = MakeOrDie("chimera", Halved(p, m));
      ASSERT_EQ(s.num_micro_batches, 2 * m);
      if (m % 2 == 0) {
        ASSERT_EQ(s.order, MakeOrDie("chimera", Doubled(p, 2 * m)).order);
      }
      for (const std::vector<Action>& list : s.order) {
        for (size_t i = 0; i + 1 < list.size(); ++i) {
          if (list[i].kind != ActionKind::kForward || list[i].micro_batch % 2 != 0) continue;
          Action second = list[i];
          ++second.micro_batch;
          ASSERT_EQ(ToString(list[i + 1]), ToString(second)) << p << " " << m;
        }
      }
    }
    // In passes of halves, so a quarter of (P - 2) passes of full size with M = kP.
    for (int k = 1; k <= 4; ++k) {
      ASSERT_EQ(Figures(MakeOrDie("chimera", Halved(p, k * p))).idle, 3 * (p - 2) / 2);
    }
  }
}

TEST(Chimera, Refuses) {
  EXPECT_EQ(Refusal("chimera", {3, 4}),
            "chimera --devices=3: must be even (the two directions take turns on a device); "
            "nearest: 2 or 4");
  EXPECT_EQ(Refusal("chimera", {1, 4}),
            "chimera --devices=1: must be even (the two directions take turns on a device); "
            "nearest: 2");
  EXPECT_EQ(Refusal("chimera", {4, 1}),
            "chimera --micro_batches=1: each replica takes one; use at least --replicas=2");
  SchemeParams params{4, 4};
  params.virtual_stages = 2;
  EXPECT_EQ(Refusal("chimera", params),
            "chimera --virtual_stages=2: this scheme holds one stage per device; use "
            "--virtual_stages=1");
  EXPECT_EQ(Refusal("chimera", WithReplicas(12, 24, 8)),
            "chimera --replicas=8: must be even and divide --devices=12; use one of 2, 4, "
            "6, 12");
  params = WithReplicas(8, 8, 4);
  params.concatenation = Concatenation::kBackwardHalving;
  EXPECT_EQ(Refusal("chimera", params),
            "chimera --concatenation=backward_halving: not with --replicas=4, whose "
            "backwards would meet on a device; use --replicas=2");
}

}  // namespace
}  // namespace pipelab
