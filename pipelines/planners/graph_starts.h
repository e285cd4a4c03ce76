// The plans of planners of sequences, for a graph pipeline's search to start from: a sequence of
// stages is a graph of stages.
//
//   const PlanProblem sequence = SequenceProblem(problem);
//   for (const PlanStages& stages : QuickStarts(sequence, deadline)) search.Offer(stages);
//   search.Offer(StartOfPiper(sequence, search.value(), deadline).stages);
#ifndef PIPELAB_PIPELINES_PLANNERS_GRAPH_STARTS_H_
#define PIPELAB_PIPELINES_PLANNERS_GRAPH_STARTS_H_

#include <vector>

#include "absl/time/time.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

using PlanStages = std::vector<PlanStage>;  // valid or not; empty: no plan

// Planners of sequences plan this.
PlanProblem SequenceProblem(const PlanProblem& problem);

// The plans of uniform, gpipe, chain and dapple.
std::vector<PlanStages> QuickStarts(const PlanProblem& sequence, absl::Time deadline);

// Piper's plan, if its longest stage takes less than `known`, which makes its search short.
struct PiperStart {
  PlanStages stages;
  bool complete = false;  // no sequence is better: the search was not stopped
};
PiperStart StartOfPiper(const PlanProblem& sequence, double known, absl::Time deadline);

PlanStages StartOfPipeDream(const PlanProblem& sequence, absl::Time deadline);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_GRAPH_STARTS_H_
