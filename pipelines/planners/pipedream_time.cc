#include <algorithm>
#include <cstdint>

#include "pipelines/planners/stage_sums.h"

namespace pipelab {
namespace {

// Bytes of outputs that go on from the stages before `cut`.
double BytesAcross(const PlanProblem& problem, const std::vector<int>& stage_of, int cut) {
  double bytes = 0;
  for (const PlanOperator& o : problem.operators) {
    for (int e : o.out_edges) {
      const PlanEdge& edge = problem.edges[e];
      if (stage_of[edge.from] < cut && stage_of[edge.to] >= cut) {
        bytes += o.output_bytes;
        break;
      }
    }
  }
  return bytes;
}

std::vector<PlanLevel> LevelsOf(const PlanProblem& problem) {
  if (problem.objective == PlanObjective::kPipeDream) return problem.levels;
  return {{problem.devices, problem.bandwidth}};
}

int64_t MachinesOn(const PlanStage& stage, size_t level) {
  return stage.data_of_level.empty() ? stage.data : stage.data_of_level[level];
}

// The time of stages [begin, end) on the levels below `levels`: the longest of the parts that level
// makes of them. Stages of one part fill a machine of the level, so that is where a part ends.
// `first`: nothing is charged for what comes in or goes out of the first part.
double TimeOf(const PlanProblem& problem, const std::vector<PlanStage>& stages, size_t levels,
              int begin, int end, bool first) {
  if (levels == 0) return ComputeTime(problem, stages[begin]);
  const std::vector<int> stage_of = StageOf(problem, stages);
  const std::vector<PlanLevel> machine = LevelsOf(problem);
  const double b = machine[levels - 1].bandwidth;
  int64_t below = 1;
  for (size_t l = 0; l + 1 < levels; ++l) below *= machine[l].devices;
  double longest = 0;
  for (int s = begin, part = 0; s < end; ++part) {
    const auto m = static_cast<double>(MachinesOn(stages[s], levels - 1));
    double parameters = 0;
    int part_end = s;
    for (int64_t devices = 0; part_end < end && devices < below; ++part_end) {
      int64_t copies = 1;
      for (size_t l = 0; l + 1 < levels; ++l) copies *= MachinesOn(stages[part_end], l);
      devices += copies;
      parameters += ParameterBytes(problem, stages[part_end]);
    }
    double sync = 4 * (m - 1) * parameters / (b * m);
    // PipeDream's own rule for a level that is one part.
    if (first && part == 0 && levels > 1) {
      sync /= static_cast<double>(machine[levels - 2].devices);
    }
    const double inner = TimeOf(problem, stages, levels - 1, s, part_end, true);
    longest = std::max(longest, (inner + sync) / m);
    if (!first || part > 0) {
      longest = std::max(longest, 2 * BytesAcross(problem, stage_of, s) / (b * m));
      longest = std::max(longest, 2 * BytesAcross(problem, stage_of, part_end) / (b * m));
    }
    s = part_end;
  }
  return longest;
}

}  // namespace

double PipeDreamTime(const PlanProblem& problem, const std::vector<PlanStage>& stages) {
  return TimeOf(problem, stages, LevelsOf(problem).size(), 0, static_cast<int>(stages.size()),
                true);
}

double PipeDreamStageTime(const PlanProblem& problem, const std::vector<PlanStage>& stages,
                          int stage) {
  return TimeOf(problem, stages, LevelsOf(problem).size(), stage, stage + 1, stage == 0);
}

}  // namespace pipelab
