#include "pipelines/planners/cut_walk.h"

#include <cstddef>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/planners/best_stages.h"
#include "pipelines/planners/equal_branches.h"
#include "pipelines/planners/pipedream_search.h"
#include "pipelines/planners/piper_costs.h"
#include "pipelines/planners/planners.h"
#include "tests/support/plan_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

SmallGraph Line(int n) {
  SmallGraph graph = {n, {}};
  for (int v = 0; v + 1 < n; ++v) graph.edges.emplace_back(v, v + 1);
  return graph;
}

PlanProblem LongLine(int n, PlanObjective objective) {
  SmallOptions options;
  options.memory = false;
  PlanProblem p = SmallProblem(Line(n), objective, options, 3);
  p.devices = p.micro_batches = 8;
  p.levels = {{8, 4}};
  p.bandwidth = 4;
  return p;
}

void ExpectCuts(const PlanProblem& p, const OperatorGroups& groups, const Downsets& sets) {
  CutWalk walk(p, groups, sets, absl::InfiniteFuture());
  for (int u = 0; u < sets.size(); ++u) {
    ASSERT_TRUE(walk.Next());
    ASSERT_EQ(walk.set(), u);
    std::vector<int> expected;
    for (size_t e = 0; e < p.edges.size(); ++e) {
      const int from = groups.group_of[p.edges[e].from], to = groups.group_of[p.edges[e].to];
      if (sets.Has(u, from) != sets.Has(u, to)) expected.push_back(static_cast<int>(e));
    }
    ASSERT_EQ(walk.edges(), expected) << u;
  }
  EXPECT_FALSE(walk.Next());
  EXPECT_FALSE(walk.stopped());
}

TEST(CutWalk, IsBruteForce) {
  for (const SmallGraph& graph : SmallGraphs(/*nodes=*/7, /*most=*/60, /*seed=*/5)) {
    const PlanProblem p = SmallProblem(graph, PlanObjective::kStageTime, {}, 1);
    const OperatorGroups single = SingleGroups(p);
    for (const OperatorGroups& groups : {single, CoarserGroups(single, 5)}) {
      ExpectCuts(p, groups, *Downsets::Make(groups.followers, 1000));
      ExpectCuts(p, groups, *Downsets::Make(Needs(groups), 1000));
    }
  }
}

TEST(CutWalk, StopsAtTheDeadline) {
  const PlanProblem p = LongLine(5000, PlanObjective::kStageTime);
  const OperatorGroups groups = SingleGroups(p);
  const auto sets = Downsets::Make(groups.followers, 10000);
  ASSERT_TRUE(sets.has_value());
  CutWalk walk(p, groups, *sets, absl::InfinitePast());
  int seen = 0;
  while (walk.Next()) ++seen;
  EXPECT_TRUE(walk.stopped());
  EXPECT_LE(seen, 64);
  EXPECT_TRUE(PiperCosts(p, groups, *sets, nullptr, absl::InfinitePast()).stopped());
  const std::vector<int> edge_class(p.edges.size());
  const CutEdges cut_edges(p, groups, *sets, edge_class, absl::InfinitePast());
  EXPECT_TRUE(cut_edges.stopped());
  EXPECT_TRUE(cut_edges.of(5000).empty());
  const PlanProblem q = LongLine(5000, PlanObjective::kPipeDream);
  EXPECT_TRUE(PipeDreamByCopies(q, groups, *sets, kInfinity, absl::InfinitePast()).stopped);
}

// All edges for each of the sets would be 10^10 steps, a minute.
TEST(CutWalk, SumsOfALongLineAreOfWhatChanges) {
  const PlanProblem p = LongLine(100000, PlanObjective::kStageTime);
  const OperatorGroups groups = SingleGroups(p);
  const auto sets = Downsets::Make(groups.followers, 150000);
  ASSERT_TRUE(sets.has_value());
  const absl::Time start = absl::Now();
  CutWalk walk(p, groups, *sets, absl::InfiniteFuture());
  size_t edges = 0;
  while (walk.Next()) edges += walk.edges().size();
  EXPECT_EQ(edges, p.edges.size());
  EXPECT_FALSE(PiperCosts(p, groups, *sets, nullptr, absl::InfiniteFuture()).stopped());
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
}

TEST(CutWalk, PlannersSayThatTheyWereStopped) {
  for (const char* planner : {"piper", "pipedream"}) {
    const bool piper = planner[4] == 'r';
    const PlanProblem p =
        LongLine(20000, piper ? PlanObjective::kStageTime : PlanObjective::kPipeDream);
    PlannerOptions options;
    options.time_limit = absl::ZeroDuration();
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan(planner, p, options));
    EXPECT_EQ(plan.state, PlanState::kTimeLimit) << planner;
    EXPECT_TRUE(plan.has_plan()) << planner;
  }
}

}  // namespace
}  // namespace pipelab
