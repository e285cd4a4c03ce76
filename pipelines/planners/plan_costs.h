// What stages cost under each objective: for planners that compare finished plans, and for what a
// plan prints. (CheckPlan does its own arithmetic.)
//
//   double seconds = StageValue(problem, PlanObjective::kStageTime, stages, 3);
//
// Stages are a sequence in which every edge goes on. docs/planning.md has the formulas.
#ifndef PIPELAB_PIPELINES_PLANNERS_PLAN_COSTS_H_
#define PIPELAB_PIPELINES_PLANNERS_PLAN_COSTS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

// Between any two devices: that of the level that joins all, where the problem has no other.
double FlatBandwidth(const PlanProblem& problem);
// Between so many consecutive devices from the first of a unit on: that of the innermost level
// whose units have so many.
double CopiesBandwidth(const PlanProblem& problem, int64_t copies);

// Micro-batches that each stage of a graph pipeline keeps in flight: what the stage's own
// micro-batch and those on the longest path to the end, in samples, make of its own, rounded up. Of
// a chain whose stages have micro-batches in proportion to their copies, Piper's number.
std::vector<int64_t> GraphInFlight(const PlanProblem& problem,
                                   const std::vector<PlanStage>& stages);

// The bytes of one device of the stage: what micro-batches in flight keep, and the rest.
double MemoryOfStage(const PlanProblem& problem, const std::vector<PlanStage>& stages, int stage);

// What a batch takes in a graph of stages: the longest path through them, a micro-batch of its own
// on each, and what is left of the batch at the pace of the slowest.
double GraphBatchTime(const PlanProblem& problem, const std::vector<PlanStage>& stages);

// One stage's part of an objective that is the largest of its stages' parts; of kVariance the
// stage's compute time.
double StageValue(const PlanProblem& problem, PlanObjective objective,
                  const std::vector<PlanStage>& stages, int stage);

double PlanValue(const PlanProblem& problem, PlanObjective objective,
                 const std::vector<PlanStage>& stages);

// The fullest device of the plan.
double PeakBytes(const PlanProblem& problem, const std::vector<PlanStage>& stages);

// `groups` of operators, one after the other, cut into ranges: plain variants, one device each.
// `first` is that of partition.h. Feasible, with value and peak; infeasible where a stage does not
// fit in memory.
Plan PlanOfRanges(const PlanProblem& problem, PlanObjective objective,
                  const std::vector<std::vector<int>>& groups, const std::vector<int>& first);

// Operators that no plan may part, each group after those that it needs.
absl::StatusOr<std::vector<std::vector<int>>> PlanGroups(const PlanProblem& problem,
                                                         absl::string_view planner);

// Both passes of a slice of so many units of tokens with so many before it, of micro-batches of the
// size in this place; layers that recompute go forward twice.
double StageSliceTime(const PlanProblem& problem, const PlanStage& stage, size_t size, int length,
                      int before);

// State and lower bound of a search's best plan, whose value is filled in. Complete: nothing better
// is left, or nothing at all.
void SetState(bool complete, bool timed_out, Plan* plan);

// A variant's time at the best size of micro-batches, of the problem's samples. Between sizes times
// are on a line, so that a time a sample is least at one of them.
double LeastTime(const PlanProblem& problem, const PlanVariant& variant);

// No plan that uses all devices has a smaller largest stage: the work of all operators over the
// devices, and the largest operator that cannot be divided. 0 where the objective has no such
// bound.
double SimpleLowerBound(const PlanProblem& problem, PlanObjective objective);

// The variant of degree 1 that does not recompute, else the first. 0 where there is none of degree
// 1: planners without tensor parallelism refuse such a problem (CheckHasPlainVariants).
int PlainVariantOf(const PlanOperator& op);
absl::Status CheckHasPlainVariants(const PlanProblem& problem, absl::string_view planner);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_PLAN_COSTS_H_
