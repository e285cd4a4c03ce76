// `pipelab serve`: the page of commands (docs/serve.md).
#ifndef PIPELAB_EXPERIMENTS_SERVE_SERVE_COMMAND_H_
#define PIPELAB_EXPERIMENTS_SERVE_SERVE_COMMAND_H_

#include "absl/status/status.h"
#include "experiments/commands/command.h"

namespace pipelab {

// Serves until it is interrupted; its errors are those of commands (commands/command.h).
absl::Status ServeCommand(const Words& words);

void LinkServeCommand();  // for main(), before PipelabMain

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SERVE_SERVE_COMMAND_H_
