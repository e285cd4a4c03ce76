// Simulates planners' plans for --model: the step, one line about it, and its timeline.
//
//   PlanSimulator simulator(problem, std::move(on));
//   text += simulator.Timeline(plan);
//   simulator.StepSeconds(plan)
#ifndef PIPELAB_EXPERIMENTS_PLAN_COMMANDS_PLAN_TIMELINE_H_
#define PIPELAB_EXPERIMENTS_PLAN_COMMANDS_PLAN_TIMELINE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"
#include "pipelines/step/model_on_cluster.h"

namespace pipelab {

class PlanSimulator {
 public:
  // The model and the machine have made the problem, which is kept.
  PlanSimulator(const PlanProblem& problem, std::unique_ptr<ModelOnCluster> on)
      : problem_(&problem), on_(std::move(on)) {}

  // A plan that cannot run (tensor parallelism, sizes that do not divide) has the reason in the
  // place of a timeline.
  std::string Timeline(const Plan& plan) const;
  // An error says why the plan cannot run, or that a device is too small for it. Planners find the
  // same stages again and again: they are simulated once.
  absl::StatusOr<double> StepSeconds(const Plan& plan);

 private:
  absl::StatusOr<double> SimulatedSeconds(const Plan& plan) const;

  const PlanProblem* problem_;
  std::unique_ptr<ModelOnCluster> on_;
  std::vector<std::pair<std::vector<PlanStage>, absl::StatusOr<double>>> known_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PLAN_COMMANDS_PLAN_TIMELINE_H_
