// The simulated run that the flags of simulate and show describe: of a model on a cluster
// (--model), or with times given as options.
//
//   PIPELAB_ASSIGN_OR_RETURN(SimulatedRun run,
//                            RunFromFlags(std::move(schedule), /*least_decimals=*/0));
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_RUN_FLAGS_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_RUN_FLAGS_H_

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "experiments/commands/schedule_input.h"
#include "experiments/commands/step_input.h"
#include "experiments/simulate/simulated_run.h"
#include "models/graph/layer_spec.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

// `least_decimals`: SimulatedTimes::least_decimals. InvalidArgument naming the option for what the
// other way of giving times is for; FailedPrecondition for what is wrong in a file.
absl::StatusOr<SimulatedRun> RunFromFlags(ScheduleInput input, int least_decimals);

// A step of a model as a run, in milliseconds and bytes.
SimulatedRun RunOfStep(StepPrediction prediction);

// InvalidArgument naming the first flag that gives times by hand, which a model has.
absl::Status CheckNoTimesByHand();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_RUN_FLAGS_H_
