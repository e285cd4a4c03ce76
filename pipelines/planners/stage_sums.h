// Sums over the operators of stages, for the costs of finished plans (plan_costs.h).
#ifndef PIPELAB_PIPELINES_PLANNERS_STAGE_SUMS_H_
#define PIPELAB_PIPELINES_PLANNERS_STAGE_SUMS_H_

#include <cstddef>
#include <vector>

#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

// [operator] -> stage; -1: none.
std::vector<int> StageOf(const PlanProblem& problem, const std::vector<PlanStage>& stages);

// How the layer in this place of the stage is run.
const PlanVariant& VariantIn(const PlanProblem& problem, const PlanStage& stage, size_t place);

// Samples of one copy's micro-batch.
double SamplesOfCopy(const PlanProblem& problem, const PlanStage& stage);

// The time of the problem's samples on one device, in micro-batches of the stage's size.
double ComputeTime(const PlanProblem& problem, const PlanStage& stage);

double ParameterBytes(const PlanProblem& problem, const PlanStage& stage);

// PipeDream's objective (kPipeDream), and one stage's part of it.
double PipeDreamTime(const PlanProblem& problem, const std::vector<PlanStage>& stages);
double PipeDreamStageTime(const PlanProblem& problem, const std::vector<PlanStage>& stages,
                          int stage);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_STAGE_SUMS_H_
