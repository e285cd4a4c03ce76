// What planners of sequences know of a graph pipeline: plans to start from, since a sequence of
// stages is a graph of stages, and a lower bound.
//
//   for (auto& stages : QuickStarts(problem, deadline)) search.Offer(std::move(stages));
//   SequentialStarts starts = ExactStarts(problem, search.value(), deadline);
#ifndef PIPELAB_PIPELINES_PLANNERS_GRAPH_STARTS_H_
#define PIPELAB_PIPELINES_PLANNERS_GRAPH_STARTS_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

struct SequentialStarts {
  std::vector<std::vector<PlanStage>> plans;  // valid or not
  // No graph of stages has a smaller longest stage (kGraphStageTime), and why.
  double lower_bound = 0;
  std::string bound_reason;
  bool complete = false;    // no sequence is better: Piper's search was not stopped
  bool infeasible = false;  // proven: no graph of stages fits in memory
};

// The plans of uniform, gpipe, chain and dapple.
std::vector<std::vector<PlanStage>> QuickStarts(const PlanProblem& problem, absl::Time deadline);

// The plans of piper and pipedream. The bound is Piper's optimum of a problem in which each stage
// keeps one micro-batch, of the best size, and messages and sums are as fast as anywhere: with ample
// memory no order of stages matters, so every graph of stages is a sequence of this problem. Of
// Piper only plans with a smaller longest stage than `known` are of use, which makes its searches
// short.
SequentialStarts ExactStarts(const PlanProblem& problem, double known, absl::Time deadline);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_GRAPH_STARTS_H_
