#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/atomic_pairs.h"
#include "pipelines/ir/program.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/scheme_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// The largest of the groups in which the scheme takes M micro-batches on P devices.
int LargestGroup(int p, int m, int size) {
  if (m < p) return m;
  if (size == 0) return (m + m / p - 1) / (m / p);
  if (m <= size) return m;
  const int rest = m % size;
  return rest < p ? size + rest : size;
}

// The Megatron-LM paper's figure 4 (bottom): 4 devices, 8 micro-batches, 2 virtual stages. And the
// smallest.
TEST(Interleaved, PaperFigure) {
  EXPECT_EQ(Picture("interleaved", {4, 8}), R"(
0: 0F0 0F1 0F2 0F3 4F0 4F1 4F2 4F3 0F4 0F5 0F6 4B0 0F7 4B1 4F4 4B2 4F5 4B3 4F6 0B0 4F7 0B1 0B2 0B3 4B4 4B5 4B6 4B7 0B4 0B5 0B6 0B7
1: 1F0 1F1 1F2 1F3 5F0 5F1 5F2 5F3 1F4 5B0 1F5 5B1 1F6 5B2 1F7 5B3 5F4 1B0 5F5 1B1 5F6 1B2 5F7 1B3 5B4 5B5 5B6 5B7 1B4 1B5 1B6 1B7
2: 2F0 2F1 2F2 2F3 6F0 6F1 6F2 6B0 6F3 6B1 2F4 6B2 2F5 6B3 2F6 2B0 2F7 2B1 6F4 2B2 6F5 2B3 6F6 6B4 6F7 6B5 6B6 6B7 2B4 2B5 2B6 2B7
3: 3F0 3F1 3F2 3F3 7F0 7B0 7F1 7B1 7F2 7B2 7F3 7B3 3F4 3B0 3F5 3B1 3F6 3B2 3F7 3B3 7F4 7B4 7F5 7B5 7F6 7B6 7F7 7B7 3B4 3B5 3B6 3B7
)");
  EXPECT_EQ(Picture("interleaved", {2, 2}), R"(
0: 0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1
1: 1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1
)");
}

// 1 - VM/((V-1) max(M,P) + M + P - 1), for every M and group size, and
// min(VM, (V-1)g + 2(P-1-d) + 1) activations for a largest group of g.
TEST(Interleaved, ClosedForms) {
  for (int p = 1; p <= 8; ++p) {
    for (int v = 2; v <= 4; ++v) {
      for (int m = 1; m <= 4 * p; ++m) {
        for (int size : {0, p, p + 1, 2 * p, 3 * p - 1, 3 * p}) {
          SchemeParams params{p, m, v};
          params.group_size = size;
          const Schedule s = MakeOrDie("interleaved", params);
          const UnitFigures f = Figures(s);
          ASSERT_EQ(f.busy, 3 * v * m);
          ASSERT_EQ(f.makespan, 3 * ((v - 1) * std::max(m, p) + m + p - 1))
              << p << " " << m << " " << v << " " << size;
          const int g = LargestGroup(p, m, size);
          for (int d = 0; d < p; ++d) {
            ASSERT_EQ(f.peak[d], std::min(v * m, (v - 1) * g + 2 * (p - 1 - d) + 1))
                << p << " " << m << " " << v << " " << size;
          }
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

// Groups are those of Megatron-LM with a group size of the user's, and of PyTorch without one.
TEST(Interleaved, Groups) {
  const auto first_forwards = [](int devices, int micro_batches, int group_size) {
    SchemeParams params{devices, micro_batches};
    params.group_size = group_size;
    const Schedule s = MakeOrDie("interleaved", params);
    std::string text;
    for (const Action& a : s.order[0]) {
      if (a.kind == ActionKind::kForward) text += ToString(a) + " ";
    }
    return text;
  };
  EXPECT_EQ(first_forwards(2, 6, 4), "0F0 0F1 0F2 0F3 2F0 2F1 2F2 2F3 0F4 0F5 2F4 2F5 ");
  // PyTorch: M / P rounds. A last group of 1 would be too small: it joins the one before.
  EXPECT_EQ(first_forwards(2, 6, 0), "0F0 0F1 2F0 2F1 0F2 0F3 2F2 2F3 0F4 0F5 2F4 2F5 ");
  EXPECT_EQ(first_forwards(3, 8, 0),
            "0F0 0F1 0F2 0F3 3F0 3F1 3F2 3F3 0F4 0F5 0F6 0F7 3F4 3F5 3F6 3F7 ");
  EXPECT_EQ(first_forwards(2, 5, 2), "0F0 0F1 2F0 2F1 0F2 0F3 0F4 2F2 2F3 2F4 ");
  EXPECT_EQ(first_forwards(2, 5, 0), "0F0 0F1 0F2 2F0 2F1 2F2 0F3 0F4 2F3 2F4 ");
  EXPECT_EQ(first_forwards(4, 3, 0), "0F0 0F1 0F2 4F0 4F1 4F2 ");
  EXPECT_EQ(first_forwards(2, 3, 9), "0F0 0F1 0F2 2F0 2F1 2F2 ");
}

TEST(Interleaved, Refuses) {
  SchemeParams params{4, 8};
  params.group_size = 3;
  EXPECT_EQ(Refusal("interleaved", params),
            "interleaved --group_size=3: a group is back at a device for its next stage "
            "only after all 4 devices; use at least --devices=4");
}

// Megatron-Core's: one more forward than interleaved before the first backward.
TEST(InterleavedMerged, Figures) {
  EXPECT_EQ(Picture("interleaved_merged", {1, 3, 1}), R"(
0: 0F0 0F1 0B0 0F2 0B1 0B2
)");
  EXPECT_EQ(Picture("interleaved_merged", {2, 4}), R"(
0: 0F0 0F1 2F0 2F1 0F2 0F3 2B0 2F2 2B1 2F3 0B0 0B1 2B2 2B3 0B2 0B3
1: 1F0 1F1 3F0 3F1 3B0 1F2 3B1 1F3 1B0 3F2 1B1 3F3 3B2 3B3 1B2 1B3
)");
}

// All forwards but those of the warm-up are merged with a backward, and only these take less.
TEST(InterleavedMerged, PairsTakeLess) {
  for (int p = 1; p <= 6; ++p) {
    for (int v = 1; v <= 3; ++v) {
      for (int m = 2 * p; m <= 4 * p; m += p) {
        const Schedule s = MakeOrDie("interleaved_merged", {p, m, v});
        const std::vector<std::vector<char>> pairs = FindPairs(s);
        PIPELAB_ASSERT_OK_AND_ASSIGN(Program program, Lower(s, {}));
        PairForwardBackward(&program);
        CostTable costs = CostTable::Unit(s, Nanoseconds(100));
        const Trace waited = Simulate(program, costs).value();
        for (StageCost& stage : costs.stages) stage.merged_saving = Nanoseconds(20);
        const Trace merged = Simulate(program, costs).value();
        for (int d = 0; d < p; ++d) {
          const int warm_up = 2 * (p - 1 - d) + (v - 1) * p + 1;
          const int64_t steady = std::max(0, v * m - warm_up);
          ASSERT_EQ(std::count(pairs[d].begin(), pairs[d].end(), 1), steady)
              << p << " " << v << " " << m << " device " << d;
          int64_t busy = 0;
          for (const ExecutedInstruction& span : SpansOf(program, merged, d)) {
            if (span.op == OpCode::kCompute) busy += span.end_ns - span.begin_ns;
          }
          ASSERT_EQ(busy, 300 * v * m - 2 * 20 * steady);
        }
        ASSERT_LE(merged.makespan, waited.makespan);
      }
    }
  }
}

}  // namespace
}  // namespace pipelab
