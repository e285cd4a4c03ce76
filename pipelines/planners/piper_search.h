// The two exact searches behind the planner "piper" (piper_plan.cc), over the sets of a lattice.
//
//   PiperResult r = PiperByBound(costs, problem, upper, deadline);
//   r.stages, r.lower_bound
//
// PiperByBound asks for ever smaller bounds on the stage time whether the devices suffice: for each
// set the fewest devices and copies that its stages need under the bound. A stage's memory grows
// with the copies behind it, and fewer devices and copies never hurt anybody before it, so pairs
// that another pair does not beat are all that is kept, and of a stage's numbers of copies the
// smallest that is fast enough and fits. For any tensor degrees and thousands of devices.
//
// PiperByCopies finds the least stage time for each set and number of copies in one pass over all
// nested pairs of sets, cut by an upper bound. For one tensor degree and few devices, where graphs
// branch and have tens of thousands of sets.
#ifndef PIPELAB_PIPELINES_PLANNERS_PIPER_SEARCH_H_
#define PIPELAB_PIPELINES_PLANNERS_PIPER_SEARCH_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "pipelines/planners/piper_costs.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

struct PiperResult {
  std::vector<PlanStage> stages;  // empty: there is no plan below the upper bound
  double value = std::numeric_limits<double>::infinity();
  double lower_bound = 0;  // over all plans whose cuts are sets of the lattice
  bool stopped = false;    // at the deadline
};

// Both look for plans of a smaller value than `upper`, which may be infinite.
PiperResult PiperByBound(const PiperCosts& costs, const PlanProblem& problem, double upper,
                         absl::Time deadline);
PiperResult PiperByCopies(const PiperCosts& costs, const PlanProblem& problem, double upper,
                          absl::Time deadline);
// Whether PiperByCopies has the memory and time for it.
bool SuitsPiperByCopies(const PiperCosts& costs, const PlanProblem& problem);

// A stage of the sets' difference with the fastest variants that fit.
PlanStage MakePiperStage(const PiperCosts& costs, int set, int later, int t, int64_t d, int64_t y);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_PIPER_SEARCH_H_
