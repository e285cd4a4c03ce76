// GraphPipe's planner on graphs of all shapes and sizes: never worse than a planner of sequences,
// and in bounded time. The checker judges every plan.
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "pipelines/checker/check_plan.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/plan_testing.h"
#include "pipelines/planners/planners.h"
#include "pipelines/planners/random_graphs.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr double kSame = 1 + 1e-9;

// What the checker makes of the stages as a graph; infinity: they are no valid one.
double ValueAsGraph(const PlanProblem& p, const Plan& plan, PlanObjective objective) {
  Plan graph;
  graph.objective = objective;
  graph.stages = plan.stages;
  for (PlanStage& stage : graph.stages) stage.in_flight = 0;
  const absl::StatusOr<PlanReport> report = CheckPlan(p, graph);
  return report.ok() ? report->value : std::numeric_limits<double>::infinity();
}

struct Tally {
  int graphs = 0, plans = 0, tight = 0;  // tight: optimal, or at most 5 % above the bound
};

void ExpectNeverWorse(PlanProblem p, PlanObjective objective, Tally* tally) {
  PlannerOptions options;
  options.time_limit = absl::Seconds(10);
  p.objective = objective;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan("graphpipe", p, options));
  if (std::getenv("PIPELAB_GRAPHS") != nullptr)
    std::cerr << PlanStateName(plan.state) << " " << plan.value / plan.lower_bound << " n "
              << p.size() << " D " << p.devices << " bw " << p.bandwidth << " mem "
              << p.memory_bytes << " " << plan.bound_reason << " stages " << plan.stages.size()
              << " " << plan.value << " t " << plan.search_time << "\n";
  ++tally->graphs;
  if (std::getenv("PIPELAB_GRAPHS") != nullptr)
    std::cerr << PlanStateName(plan.state) << " " << plan.value / plan.lower_bound << " n "
              << p.size() << " D " << p.devices << " bw " << p.bandwidth << " mem "
              << p.memory_bytes << " " << plan.bound_reason << " stages " << plan.stages.size()
              << " " << plan.value << " t " << plan.search_time << "\n";
  const double value =
      plan.has_plan() ? ValueAsGraph(p, plan, objective) : std::numeric_limits<double>::infinity();
  if (plan.has_plan()) {
    ++tally->plans;
    ASSERT_NEAR(value, plan.value, 1e-9 * value);
    ASSERT_LE(plan.lower_bound, value * kSame);
  }
  tally->tight += plan.state == PlanState::kOptimal || plan.state == PlanState::kInfeasible ||
                          value <= 1.05 * plan.lower_bound
                      ? 1
                      : 0;
  PlanProblem sequence = p;
  sequence.objective = PlanObjective::kStageTime;
  for (const char* planner : {"uniform", "gpipe", "chain", "pipedream", "dapple", "piper"}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan other, MakePlan(planner, sequence, {}));
    if (!other.has_plan()) continue;
    const double theirs = ValueAsGraph(p, other, objective);
    ASSERT_LE(value, theirs * kSame) << planner << " is better";
    ASSERT_TRUE(!(plan.lower_bound > theirs * kSame)) << planner << " is below the bound";
  }
}

// The seeds of one shard; PIPELAB_GRAPHS says how many graphs a shape has.
int GraphsOfShape() {
  const char* text = std::getenv("PIPELAB_GRAPHS");
  return text == nullptr ? 8 : std::atoi(text);
}

class GraphShapes : public ::testing::TestWithParam<int> {};

TEST_P(GraphShapes, NeverWorseThanASequence) {
  const auto shape = static_cast<GraphShape>(GetParam());
  Tally tally;
  for (int seed = 1; seed <= GraphsOfShape(); ++seed) {
    Draw draw(seed, "size");
    const int size = 15 + static_cast<int>(draw.Below(46));
    const PlanProblem p = RandomGraph(shape, size, seed);
    const absl::Time begin = absl::Now();
    for (const auto objective : {PlanObjective::kGraphStageTime, PlanObjective::kGraphBatchTime}) {
      ASSERT_NO_FATAL_FAILURE(ExpectNeverWorse(
          p, objective,
          objective == PlanObjective::kGraphStageTime ? &tally : std::make_unique<Tally>().get()))
          << "seed " << seed << ", " << size << " operators, " << PlanObjectiveName(objective);
    }
    if (std::getenv("PIPELAB_GRAPHS") != nullptr) {
      std::cerr << GetParam() << " " << seed << " " << absl::Now() - begin << " tight "
                << tally.tight << "/" << tally.graphs << "\n";
    }
  }
  EXPECT_GE(tally.tight, 0.9 * tally.graphs);
}

// Of this program so far.
double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }
double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1000;
}

struct GrowthCase {
  const char* name;
  std::vector<PlanEdge> edges;
  int operators;
  double most_seconds, most_gap;
};

TEST(GraphGrowth, WideAndLongGraphs) {
  const std::vector<GrowthCase> cases = {
      {"16 chains of 6", ChainsSideBySide(16, 6), 96, 2, 1.03},
      {"1000 with skips", RandomEdges(GraphShape::kSkips, 1000, 1), 1000, 10, 1.1},
      {"2000 with skips", RandomEdges(GraphShape::kSkips, 2000, 1), 2000, 10, 1.1},
      {"1000 in cells", RandomEdges(GraphShape::kCells, 1000, 1), 1000, 10, 1.1},
  };
  for (const GrowthCase& c : cases) {
    const PlanProblem p = WithRandomCosts(c.edges, c.operators, 1);
    const double begin = ProcessorSeconds();
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan("graphpipe", p, {}));
    const double seconds = ProcessorSeconds() - begin;
    std::cerr << c.name << ": " << seconds << " s, " << plan.value / plan.lower_bound << " "
              << plan.bound_reason << " " << PeakMegabytes() << " MB, " << plan.stages.size()
              << "\n";
    EXPECT_LE(seconds, c.most_seconds) << c.name;
    EXPECT_LE(plan.value, c.most_gap * plan.lower_bound) << c.name;
    EXPECT_LE(PeakMegabytes(), 300) << c.name;
  }
}

TEST(GraphGrowth, KeepsItsTimeLimit) {
  for (const double seconds : {0.1, 1.0}) {
    for (const int chains : {16, 160}) {
      const PlanProblem p = WithRandomCosts(ChainsSideBySide(chains, 6), chains * 6, 1);
      PlannerOptions options;
      options.time_limit = absl::Seconds(seconds);
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan("graphpipe", p, options));
      std::cerr << chains << " " << seconds << ": " << plan.search_time << " "
                << plan.value / plan.lower_bound << "\n";
      EXPECT_LE(plan.search_time, options.time_limit + absl::Seconds(0.3));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GraphShapes, ::testing::Range(0, kGraphShapes));

}  // namespace
}  // namespace pipelab
