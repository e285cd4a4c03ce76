// Simulates planners' plans for --model: the step, one line about it, and its timeline.
//
//   PIPELAB_ASSIGN_OR_RETURN(const PlanSimulator simulator, PlanSimulator::Make(problem));
//   text += simulator.Timeline(plan);
//   simulator.StepSeconds(plan)
#ifndef PIPELAB_EXPERIMENTS_PLAN_COMMANDS_PLAN_TIMELINE_H_
#define PIPELAB_EXPERIMENTS_PLAN_COMMANDS_PLAN_TIMELINE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "experiments/commands/step_input.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"
#include "pipelines/step/model_on_cluster.h"

namespace pipelab {

class PlanSimulator {
 public:
  // The flags' model and cluster have made the problem, which is kept. Errors are those of the
  // flags.
  static absl::StatusOr<PlanSimulator> Make(const PlanProblem& problem);

  // A plan that cannot run (tensor parallelism, sizes that do not divide) has the reason in the
  // place of a timeline.
  std::string Timeline(const Plan& plan) const;
  // An error says why the plan cannot run, or that a device is too small for it.
  absl::StatusOr<double> StepSeconds(const Plan& plan) const;

 private:
  PlanSimulator(const PlanProblem& problem, std::unique_ptr<ModelOnCluster> on)
      : problem_(&problem), on_(std::move(on)) {}

  const PlanProblem* problem_;
  std::unique_ptr<ModelOnCluster> on_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PLAN_COMMANDS_PLAN_TIMELINE_H_
