// The run on paper that the flags of simulate and show ask for: a model on a cluster (--model), or
// times by hand.
//
//   PIPELAB_ASSIGN_OR_RETURN(PaperRun run, RunFromFlags(std::move(schedule),
//   /*least_decimals=*/0));
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_RUN_FLAGS_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_RUN_FLAGS_H_

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "experiments/commands/model_run.h"
#include "experiments/commands/paper_run.h"
#include "models/graph/layer_spec.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

// `least_decimals`: PaperTimes::least_decimals. InvalidArgument naming the option for what the
// other way of giving times is for; FailedPrecondition for what is wrong in a file.
absl::StatusOr<PaperRun> RunFromFlags(Schedule schedule, int least_decimals);

// What --model and the flags that say more of it ask for.
absl::StatusOr<ModelGraph> ModelFromFlags();
absl::StatusOr<ModelRunOptions> ModelOptionsFromFlags();
// --cluster's, which must be given; --number_type's, if it is.
absl::StatusOr<ClusterSpec> ClusterFromFlags();
absl::StatusOr<absl::optional<NumberType>> NumberTypeFromFlags();

// InvalidArgument naming the first flag that gives times by hand, which a model has.
absl::Status CheckNoTimesByHand();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_RUN_FLAGS_H_
