// What planners of sequences know of a graph pipeline: plans to start from, since a sequence of
// stages is a graph of stages, and a lower bound.
//
//   SequentialStarts starts = MakeSequentialStarts(problem, deadline);
//   for (auto& stages : starts.plans) search.Offer(std::move(stages));
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
  bool infeasible = false;  // proven: no graph of stages fits in memory
};

// The plans of uniform, gpipe, chain, pipedream, dapple and piper. The bound is Piper's optimum of
// a problem in which each stage keeps one micro-batch, of the best size, and messages and sums are
// as fast as anywhere: with ample memory no order of stages matters, so every graph of stages is a
// sequence of this problem.
SequentialStarts MakeSequentialStarts(const PlanProblem& problem, absl::Time deadline);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_GRAPH_STARTS_H_
