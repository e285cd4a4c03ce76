// Our exact planners on the inputs of Piper, PipeDream and dnn-partitioning, against the objectives
// that those found. The inputs are not part of the project: where they are absent, this is skipped.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "experiments/planning/reference_rows.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/checker/check_plan.h"
#include "pipelines/planners/plan_json.h"
#include "pipelines/planners/planners.h"
#include "tools/base/shared_data.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr char kReferenceInputs[] = "planner-inputs";
constexpr double kDigits = 2e-6;  // relative: the references' last printed digits

// Piper chooses who recomputes greedily; here an exact choice is better.
bool MayBeBeaten(const ReferenceRow& row) {
  return row.input == "piper/resnet.json" && row.config == "k=32 mem=4GiB";
}

TEST(PlannerReference, ObjectivesAreReached) {
  const std::string folder = SharedDataFolder(kReferenceInputs);
  if (folder.empty()) GTEST_SKIP() << NoSharedData(kReferenceInputs);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<ReferenceRow> rows, ReadReferenceRows(folder));
  int reached = 0, answered = 0;
  for (const ReferenceRow& row : rows) {
    SCOPED_TRACE(row.Name());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const PlanProblem problem, ProblemOf(row, folder));
    PlannerOptions options;
    // Where the reference fails, any plan with a bound will do.
    if (!row.objective.has_value()) options.time_limit = absl::Seconds(5);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan(row.planner, problem, options));
    if (row.infeasible) {
      EXPECT_EQ(plan.state, PlanState::kInfeasible);
      continue;
    }
    ASSERT_TRUE(plan.has_plan());
    ASSERT_THAT(CheckPlan(problem, plan), IsOk());
    EXPECT_GT(plan.lower_bound, 0);
    // As other programs read it.
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan again,
                                 ParsePlan(PlanToJson(plan, problem), "plan.json", problem));
    EXPECT_THAT(CheckPlan(problem, again), IsOk());
    if (!row.objective.has_value()) {
      ++answered;
      continue;
    }
    EXPECT_EQ(plan.state, PlanState::kOptimal);
    EXPECT_LE(plan.value, *row.objective * (1 + kDigits));
    if (!MayBeBeaten(row)) {
      EXPECT_GE(plan.value, *row.objective * (1 - kDigits));
    }
    ++reached;
  }
  EXPECT_GE(reached, 45);
  EXPECT_GE(answered, 2);
}

// A search that has no time answers all the same, and says so.
TEST(PlannerReference, StopsAtTheTimeLimit) {
  const std::string folder = SharedDataFolder(kReferenceInputs);
  if (folder.empty()) GTEST_SKIP() << NoSharedData(kReferenceInputs);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<ReferenceRow> rows, ReadReferenceRows(folder));
  int stopped = 0, without_plan = 0;
  for (const ReferenceRow& row : rows) {
    if (row.infeasible) continue;
    SCOPED_TRACE(row.Name());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const PlanProblem problem, ProblemOf(row, folder));
    PlannerOptions options;
    options.time_limit = absl::Nanoseconds(1);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan(row.planner, problem, options));
    stopped += plan.state == PlanState::kTimeLimit ? 1 : 0;
    if (!plan.has_plan()) {  // memory that a few cuts do not meet
      EXPECT_EQ(plan.state, PlanState::kTimeLimit);
      ++without_plan;
      continue;
    }
    ASSERT_THAT(CheckPlan(problem, plan), IsOk());
    EXPECT_LE(plan.lower_bound, plan.value);
    if (row.objective.has_value() && !MayBeBeaten(row)) {
      EXPECT_GE(plan.value, *row.objective * (1 - kDigits));
    }
  }
  EXPECT_GT(stopped, 30);
  EXPECT_LT(without_plan, 10);
}

}  // namespace
}  // namespace pipelab
