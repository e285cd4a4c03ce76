#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/versions.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/scheme_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// Four stages and the first micro-batches of PipeDream's figure of 1F1B with stashed weights: in
// the steady state stage 0 computes with weights three updates old, stage 3 with the newest.
TEST(PipeDream, PaperFigure) {
  EXPECT_EQ(Picture("pipedream", {4, 5}), R"(
0: 0F0 0F1 0F2 0F3 0B0 0S@1 0F4@1 0B1 0S@2 0B2 0S@3 0B3 0S@4 0B4@1 0S@5
1: 1F0 1F1 1F2 1B0 1S@1 1F3@1 1B1 1S@2 1F4@2 1B2 1S@3 1B3@1 1S@4 1B4@2 1S@5
2: 2F0 2F1 2B0 2S@1 2F2@1 2B1 2S@2 2F3@2 2B2@1 2S@3 2F4@3 2B3@2 2S@4 2B4@3 2S@5
3: 3F0 3B0 3S@1 3F1@1 3B1@1 3S@2 3F2@2 3B2@2 3S@3 3F3@3 3B3@3 3S@4 3F4@4 3B4@4 3S@5
)");
  EXPECT_EQ(Timeline(MakeOrDie("pipedream", {4, 8})), R"(
 0 1 2 3      '0 4'1 5'2 6'3 7'4  '5  '6  '7|
   0 1 2    '0 3'1 4'2 5'3 6'4 7'5  '6  '7  |
     0 1  '0 2'1 3'2 4'3 5'4 6'5 7'6  '7    |
       0'0 1'1 2'2 3'3 4'4 5'5 6'6 7'7      |
)");
}

TEST(PipeDream, VerticalSyncHasOneVersionAMicroBatch) {
  EXPECT_EQ(Picture("pipedream_vertical_sync", {2, 4}), R"(
0: 0F0 0F1 0B0 0S@1 0F2@1 0B1 0S@2 0F3@2 0B2@1 0S@3 0B3@2 0S@4
1: 1F0 1B0 1S@1 1F1 1B1 1S@2 1F2@1 1B2@1 1S@3 1F3@2 1B3@2 1S@4
)");
}

// Two stages and three updates: W(t+1) = W(t) - nu grad f(W(t-1)).
TEST(PipeDream2Bw, Picture) {
  EXPECT_EQ(Picture("pipedream_2bw", {2, 6}), R"(
0: 0F0 0F1 0B0 0F2 0B1 0S@1 0F3 0B2 0F4@1 0B3 0S@2 0F5@1 0B4@1 0B5@1 0S@3
1: 1F0 1B0 1F1 1B1 1S@1 1F2 1B2 1F3 1B3 1S@2 1F4@1 1B4@1 1F5@1 1B5@1 1S@3
)");
}

// An update every 3 micro-batches on two stages: group t computes with the weights of update t - 1.
TEST(PipeDream2Bw, UpdateEvery) {
  SchemeParams params{2, 6};
  params.update_interval = 3;
  EXPECT_EQ(Picture("pipedream_2bw", params), R"(
0: 0F0 0F1 0B0 0F2 0B1 0F3 0B2 0S@1 0F4 0B3 0F5 0B4 0B5 0S@2
1: 1F0 1B0 1F1 1B1 1F2 1B2 1S@1 1F3 1B3 1F4 1B4 1F5 1B5 1S@2
)");
  for (int p : {1, 2, 3, 4, 8}) {
    for (int every = p; every <= 3 * p; ++every) {
      params.devices = p;
      params.update_interval = every;
      params.micro_batches = 4 * every;
      const Schedule s = MakeOrDie("pipedream_2bw", params);
      ASSERT_EQ(LiveVersions(s), std::vector<int>(p, 2)) << p << " " << every;
      ASSERT_EQ(Figures(s).makespan, 3 * (4 * every + p - 1));
    }
  }
}

// Any number of updates costs one start-up and one drain: M (F + B) and (P - 1) (F + B) idle, as
// the last stage starts after P - 1 forwards, never waits, and P - 1 backwards follow its last one.
// 1F1B, which flushes at every update, has this idle time once an update.
// Between a stage's first backward and its last forward there is no bubble at all.
TEST(PipeDream, ClosedForms) {
  for (const char* scheme : {"pipedream", "pipedream_vertical_sync", "pipedream_2bw"}) {
    for (int p : {1, 2, 3, 4, 8, 16}) {
      for (int m : {p, 2 * p, 5 * p}) {
        const Schedule s = MakeOrDie(scheme, {p, m});
        const UnitFigures f = Figures(s);
        ASSERT_EQ(f.makespan, 3 * (m + p - 1)) << scheme << " " << p << " " << m;
        ASSERT_EQ(f.busy, 3 * m);
        for (int d = 0; d < p; ++d) ASSERT_EQ(f.peak[d], p - d);
        PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(s, {}));
        PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(program, CostTable::Unit(s)));
        for (int d = 0; d < p; ++d) {
          int64_t begin = -1, end = 0, busy = 0, busy_at_end = 0;
          for (const ExecutedInstruction& span : SpansOf(program, trace, d)) {
            if (span.op != OpCode::kCompute) continue;
            if (begin < 0 && span.action.kind == ActionKind::kBackward) begin = span.begin_ns;
            if (begin < 0) continue;
            busy += span.end_ns - span.begin_ns;
            if (span.action.kind != ActionKind::kForward) continue;
            end = span.end_ns;
            busy_at_end = busy;
          }
          ASSERT_EQ(busy_at_end, end == 0 ? 0 : end - begin) << scheme << " " << p << " " << m;
        }
      }
    }
  }
}

// n - k versions at stage k; with vertical sync as many as stages; 2BW: two, on every stage.
TEST(PipeDream, LiveVersions) {
  for (int p : {1, 2, 3, 4, 8}) {
    std::vector<int> stashed;
    for (int k = 0; k < p; ++k) stashed.push_back(p - k);
    EXPECT_EQ(LiveVersions(MakeOrDie("pipedream", {p, 4 * p})), stashed);
    EXPECT_EQ(LiveVersions(MakeOrDie("pipedream_vertical_sync", {p, 4 * p})),
              std::vector<int>(p, p));
    EXPECT_EQ(LiveVersions(MakeOrDie("pipedream_2bw", {p, 4 * p})), std::vector<int>(p, 2));
  }
  // A run that is shorter than the pipeline cannot fill it.
  EXPECT_THAT(LiveVersions(MakeOrDie("pipedream", {4, 2})), testing::ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(LiveVersions(MakeOrDie("pipedream_2bw", {4, 4})), testing::ElementsAre(1, 1, 1, 1));
}

TEST(PipeDream, Refuses) {
  EXPECT_EQ(Refusal("pipedream", {2, 2, 3}),
            "pipedream --virtual_stages=3: this scheme holds one stage per device; use "
            "--virtual_stages=1");
  EXPECT_EQ(Refusal("pipedream", {2, 40000}),
            "pipedream --micro_batches=40000: a run updates after every 1, at most 32767 "
            "times");
  EXPECT_EQ(Refusal("pipedream_2bw", {4, 6}),
            "pipedream_2bw --micro_batches=6: this scheme updates after every 4 "
            "micro-batches (--devices); nearest: 4 or 8");
  SchemeParams params{4, 15};
  params.update_interval = 6;
  EXPECT_EQ(Refusal("pipedream_2bw", params),
            "pipedream_2bw --micro_batches=15: this scheme updates after every 6 "
            "micro-batches (--update_interval); nearest: 12 or 18");
  params.update_interval = 3;
  EXPECT_EQ(Refusal("pipedream_2bw", params),
            "pipedream_2bw --update_interval=3: with fewer micro-batches than stages two "
            "weight versions are not enough; use at least --devices=4");
}

}  // namespace
}  // namespace pipelab
