#include "pipelines/planners/relaxed_problem.h"

#include <algorithm>

#include "pipelines/planners/plan_costs.h"

namespace pipelab {
int64_t LeastCopySamples(const PlanProblem& problem) {
  if (problem.micro_batch_sizes.empty()) return problem.micro_batch_size;
  int64_t least = problem.micro_batch_sizes.back();
  for (int64_t size : problem.micro_batch_sizes) {
    for (int64_t copies = 1; copies <= std::min(size, problem.devices); ++copies) {
      if (size % copies == 0) least = std::min(least, size / copies);
    }
  }
  return least;
}

PlanProblem RelaxedProblem(const PlanProblem& problem) {
  PlanProblem relaxed = problem;
  relaxed.objective = PlanObjective::kStageTime;
  relaxed.bandwidth = FlatBandwidth(problem);
  double fastest = relaxed.bandwidth;
  for (int64_t copies = 2; copies <= problem.devices; copies *= 2) {
    fastest = std::max(fastest, CopiesBandwidth(problem, copies));
  }
  // Copies divide micro-batches, and Piper has at most as many copies as micro-batches.
  const int64_t batch = BatchSamples(problem) / problem.micro_batch_size;
  relaxed.micro_batches = problem.micro_batch_sizes.empty() ? batch : BatchSamples(problem);
  relaxed.micro_batches *= (problem.devices + relaxed.micro_batches - 1) / relaxed.micro_batches;
  const double sums = relaxed.bandwidth / fastest * static_cast<double>(relaxed.micro_batches) /
                      static_cast<double>(problem.micro_batches);
  const double kept = static_cast<double>(LeastCopySamples(problem)) /
                      static_cast<double>(problem.micro_batch_size);
  for (PlanOperator& o : relaxed.operators) {
    for (auto& [degree, variants] : o.variants) {
      for (PlanVariant& v : variants) {
        v.time = LeastTime(problem, v);
        v.parameter_bytes *= sums;
        v.in_flight_bytes *= kept;
        v.times.clear();
      }
    }
  }
  relaxed.levels.clear();
  relaxed.micro_batch_sizes.clear();
  relaxed.batch_samples = 0;
  relaxed.latency = 0;
  return relaxed;
}

}  // namespace pipelab
