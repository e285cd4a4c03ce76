#include <algorithm>
#include <vector>

#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/stage_sums.h"

namespace pipelab {

double GraphBatchTime(const PlanProblem& problem, const std::vector<PlanStage>& stages) {
  const std::vector<int> stage_of = StageOf(problem, stages);
  const auto samples = static_cast<double>(problem.micro_batch_size);
  const double batch = static_cast<double>(BatchSamples(problem)) / samples;
  // The longest of the paths that end with a stage; every edge goes on to a later one.
  std::vector<double> path(stages.size());
  double longest = 0, rest = 0;
  for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
    const PlanStage& stage = stages[s];
    const double own = SamplesOfCopy(problem, stage) * static_cast<double>(stage.data) / samples;
    const double time = StageValue(problem, PlanObjective::kGraphStageTime, stages, s);
    for (int v : stage.layers) {
      for (int e : problem.operators[v].in_edges) {
        const int from = stage_of[problem.edges[e].from];
        if (from != s) path[s] = std::max(path[s], path[from]);
      }
    }
    path[s] += own * time;
    longest = std::max(longest, path[s]);
    rest = std::max(rest, std::max(batch - own, 0.0) * time);
  }
  return longest + rest;
}

}  // namespace pipelab
