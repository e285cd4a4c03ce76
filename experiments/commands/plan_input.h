// The plan that a command is about (--plan), with its model.
//
//   if (PlanIsGiven()) {
//     PIPELAB_ASSIGN_OR_RETURN(const PlanInput input, ReadPlanInput(words));
//     PIPELAB_ASSIGN_OR_RETURN(const SimulatedRun run, RunSimulatedPlan(input));
//   }
//
// --plan=FILE is what `pipelab plan` writes for --model, whose layers it names; a block's or
// branch's name stands for its layers. A step has --micro_batches of --micro_batch_size; a stage
// with its own size in the plan runs as many as make up the same samples. With --sequential each
// stage also waits for the one before it. Errors: InvalidArgument naming the option;
// FailedPrecondition for a fault in the file.
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_PLAN_INPUT_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_PLAN_INPUT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "experiments/commands/step_input.h"
#include "experiments/simulate/simulated_run.h"
#include "models/graph/layer_spec.h"
#include "pipelines/planners/plan_pipeline.h"
#include "pipelines/step/model_on_cluster.h"

namespace pipelab {

struct PlanInput {
  std::string source;  // "--plan=plan.json"
  std::unique_ptr<ModelOnCluster> on;
  PlanPipeline pipeline;

  const ModelGraph& graph() const { return on->model().graph; }
};

bool PlanIsGiven();

// Without a plan: InvalidArgument naming a flag that requires one. `takes_model`: --model is
// for the command's schedules too.
absl::Status CheckNoPlanFlags(bool takes_model);

// `words`: the command alone.
absl::StatusOr<PlanInput> ReadPlanInput(const std::vector<std::string>& words);

absl::StatusOr<SimulatedRun> RunSimulatedPlan(const PlanInput& input);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_PLAN_INPUT_H_
