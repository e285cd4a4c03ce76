// How long a command may look for something better: --time_limit.
//
//   PIPELAB_ASSIGN_OR_RETURN(options.time_limit, TimeLimitFromFlag(absl::Seconds(10)));
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_TIME_LIMIT_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_TIME_LIMIT_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace pipelab {

// `unset` where the flag is not given. InvalidArgument naming option and value.
absl::StatusOr<absl::Duration> TimeLimitFromFlag(absl::Duration unset);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_TIME_LIMIT_H_
