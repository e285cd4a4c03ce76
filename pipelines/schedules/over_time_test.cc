#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/ir/dependency.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/validate.h"
#include "pipelines/ir/versions.h"
#include "tests/support/program_checker.h"
#include "tests/support/scheme_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(OverTime, Picture) {
  EXPECT_EQ(Picture("over_time", {2, 3}), R"(
0: 0F0 0B0 0S@1 0F1@1 0B1@1 0S@2 0F2@2 0B2@2 0S@3
1: 1F0 1B0 1S@1 1F1@1 1B1@1 1S@2 1F2@2 1B2@2 1S@3
)");
  EXPECT_EQ(Timeline(MakeOrDie("over_time", {3, 4})), R"(
 0'0 1'1 2'2 3'3    |
   0'0 1'1 2'2 3'3  |
     0'0 1'1 2'2 3'3|
)");
}

// The published law, followed back through the gradients that a backward takes: at stage k of n,
// sample m is updated by the loss of sample m - 2 (n - 1 - k).
TEST(OverTime, DelayLaw) {
  for (int n : {1, 2, 3, 4, 8}) {
    const Schedule s = MakeOrDie("over_time", {n, 40});
    for (int k = 0; k < n; ++k) {
      for (int m = 0; m < 40; ++m) {
        int stage = k, sample = m;
        for (bool back = true; back;) {
          back = false;
          const Action backward = {ActionKind::kBackward, static_cast<int16_t>(stage), sample, 0,
                                   0};
          ForEachDependency(s, /*recomputed=*/false, backward, [&](const Event& e) {
            if (e.kind != EventKind::kInputGradient) return;
            back = true;
            stage = e.stage;
            sample = e.micro_batch;
          });
        }
        const int of_loss = m - 2 * (n - 1 - k);
        if (of_loss >= 0) {
          EXPECT_EQ(stage, n - 1);
          EXPECT_EQ(sample, of_loss) << n << " " << k << " " << m;
        } else {
          EXPECT_LT(stage, n - 1) << n << " " << k << " " << m;  // zeros came in between
          EXPECT_LT(sample, 2);
        }
      }
    }
  }
}

// A tick a sample, one version and one sample a stage however long the stream is; gradients of the
// last two samples are not sent.
TEST(OverTime, ClosedForms) {
  for (int p : {1, 2, 3, 4, 8, 16}) {
    for (int m : {1, 2, 3, 10, 8 * p}) {
      const Schedule s = MakeOrDie("over_time", {p, m});
      const UnitFigures f = Figures(s);
      ASSERT_EQ(f.makespan, 3 * m + p - 1) << p << " " << m;
      ASSERT_EQ(f.peak, std::vector<int64_t>(p, 1));
      ASSERT_EQ(LiveVersions(s), std::vector<int>(p, 1));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(s, {}));
      int64_t gradients = 0;
      for (const Message& message : program.messages) gradients += message.gradient;
      ASSERT_EQ(gradients, (p - 1) * std::max(0, m - 2)) << p << " " << m;
    }
  }
}

TEST(OverTimeInference, Picture) {
  const Schedule s = MakeOrDie("over_time_inference", {3, 4});
  EXPECT_EQ(Timeline(s), R"(
 0 1 2 3    |
   0 1 2 3  |
     0 1 2 3|
)");
}

// Forwards and their messages are all there is, however the program is lowered.
TEST(OverTimeInference, ClosedForms) {
  for (int p : {1, 2, 3, 4, 8, 16}) {
    for (int m : {1, 2, 3, 10, 8 * p}) {
      for (int copies : {1, 2}) {
        SchemeParams sizes{p, m};
        sizes.data_parallel = copies;
        const Schedule s = MakeOrDie("over_time_inference", sizes);
        const UnitFigures f = Figures(s);
        if (copies == 1) {
          ASSERT_EQ(f.makespan, m + p - 1) << p << " " << m;
          ASSERT_EQ(f.peak, std::vector<int64_t>(p, 1));
        }
        PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(s, {}));
        ASSERT_EQ(program.messages.size(), size_t(copies * (p - 1) * m)) << p << " " << m;
        ASSERT_TRUE(program.reductions.empty());
        for (const auto& list : program.instructions) {
          for (const Instruction& i : list) ASSERT_NE(i.op, OpCode::kStep);
        }
      }
    }
  }
}

TEST(OverTimeInference, Refuses) {
  Schedule s = MakeOrDie("over_time_inference", {2, 2});
  s.order[1].push_back({ActionKind::kBackward, 1, 0, 0, 0});
  EXPECT_EQ(Validate(s).message(),
            "device 1, position 2: 1B0: a schedule of forwards alone has F only");
  s = MakeOrDie("over_time_inference", {2, 2});
  s.order[1].pop_back();
  EXPECT_EQ(Validate(s).message(), "device 1, position 1: 1F1 is missing; the list ends here");
  s = MakeOrDie("1f1b", {2, 2});
  s.forward_only = true;
  EXPECT_EQ(Validate(s).message(),
            "device 0, position 2: 0B0: a schedule of forwards alone has F only");
  SchemeParams recompute{2, 4};
  recompute.recompute = true;
  EXPECT_EQ(Refusal("over_time_inference", recompute),
            "over_time_inference --recompute=full: there are no backwards to recompute for");
  LoweringOptions sharded;
  sharded.sharding = Sharding::kFully;
  EXPECT_EQ(
      Lower(MakeOrDie("over_time_inference", {2, 2}), sharded).status().message(),
      "--sharding=fully: a schedule of forwards alone has whole parameters and nothing beside "
      "them");
}

TEST(OverTime, Refuses) {
  EXPECT_EQ(Refusal("over_time", {2, 40000}),
            "over_time --micro_batches=40000: a run updates after every 1, at most 32767 times");
}

// Each copy of a stage takes its own rows of the late gradient.
TEST(OverTime, Groups) {
  SchemeParams groups{3, 6};
  groups.data_parallel = 2;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(MakeOrDie("over_time", groups), {}));
  EXPECT_EQ(CheckProgram(program), "");
  // Outputs of 6 samples and gradients of the 4 that are taken, across 2 edges, for 2 members.
  EXPECT_EQ(program.messages.size(), 2 * 2 * (6 + 4));
}

}  // namespace
}  // namespace pipelab
