#include "pipelines/planners/plan.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "tools/base/name_table.h"

namespace pipelab {
namespace {

constexpr std::array<std::pair<PlanState, const char*>, 4> kStates = {{
    {PlanState::kOptimal, "optimal"},
    {PlanState::kFeasible, "feasible"},
    {PlanState::kInfeasible, "infeasible"},
    {PlanState::kTimeLimit, "time limit"},
}};

}  // namespace

const char* PlanStateName(PlanState state) { return NameInTable(kStates, state); }

absl::StatusOr<PlanState> FindPlanState(absl::string_view name) {
  return FindInTable(kStates, name);
}

std::vector<std::pair<int, int>> StageEdges(const PlanProblem& problem, const Plan& plan) {
  std::vector<int> stage_of(problem.size(), -1);
  for (int s = 0; s < static_cast<int>(plan.stages.size()); ++s) {
    for (int v : plan.stages[s].layers) stage_of[v] = s;
  }
  std::vector<std::pair<int, int>> edges;
  for (const PlanEdge& edge : problem.edges) {
    const int from = stage_of[edge.from], to = stage_of[edge.to];
    if (from != to && from >= 0 && to >= 0) edges.emplace_back(from, to);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

std::string ObjectiveUnit(const PlanProblem& problem, PlanObjective objective) {
  if (objective == PlanObjective::kBatchTime || objective == PlanObjective::kBatchTimeNoOverlap ||
      objective == PlanObjective::kSliceTime || objective == PlanObjective::kGraphBatchTime) {
    return absl::StrCat(problem.time_unit.substr(0, problem.time_unit.find('/')), "/batch");
  }
  if (objective != PlanObjective::kVariance) return problem.time_unit;
  return absl::StrCat("(", problem.time_unit, ")^2");
}

}  // namespace pipelab
