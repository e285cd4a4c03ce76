// A problem for planners of sequences (kStageTime) in which no stage takes longer, or more memory,
// than in any plan of a graph pipeline: for lower bounds (graph_bound.h).
//
//   const PlanProblem relaxed = RelaxedProblem(problem);
//
// Messages go at the flat bandwidth, without latency, sums of gradients as fast as anywhere, times
// are those of the best size of micro-batches, and bytes in flight those of the smallest
// micro-batch that a copy can have.
#ifndef PIPELAB_PIPELINES_PLANNERS_RELAXED_PROBLEM_H_
#define PIPELAB_PIPELINES_PLANNERS_RELAXED_PROBLEM_H_

#include <cstdint>

#include "pipelines/planners/plan_problem.h"

namespace pipelab {

PlanProblem RelaxedProblem(const PlanProblem& problem);

// Samples of the smallest micro-batch that a copy can have.
int64_t LeastCopySamples(const PlanProblem& problem);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_RELAXED_PROBLEM_H_
