// The commands that train, or run what was trained: one a file, NAME_command.cc
// (commands/command.h).
#ifndef PIPELAB_EXPERIMENTS_RUN_RUN_COMMANDS_H_
#define PIPELAB_EXPERIMENTS_RUN_RUN_COMMANDS_H_

#include "absl/status/status.h"
#include "experiments/commands/command.h"

namespace pipelab {

absl::Status RunCommand(const Words& words);
absl::Status LogitsCommand(const Words& words);
absl::Status GenerateCommand(const Words& words);
absl::Status SwarmCommand(const Words& words);

void LinkRunCommands();  // for main(), before PipelabMain

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_RUN_RUN_COMMANDS_H_
