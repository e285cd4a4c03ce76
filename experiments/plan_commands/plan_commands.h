// The commands that plan and synthesize: one a file, NAME_command.cc (commands/command.h).
//
//   LinkPlanCommands();                  // in main(), before PipelabMain
//   CallCommand({"plan"}, {"--model=gpt-6.6b"}, &output);
#ifndef PIPELAB_EXPERIMENTS_PLAN_COMMANDS_PLAN_COMMANDS_H_
#define PIPELAB_EXPERIMENTS_PLAN_COMMANDS_PLAN_COMMANDS_H_

#include "absl/status/status.h"
#include "experiments/commands/command.h"

namespace pipelab {

absl::Status CheckPlanCommand(const Words& words);
absl::Status PlanCommand(const Words& words);
absl::Status SynthesizeCommand(const Words& words);

void LinkPlanCommands();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PLAN_COMMANDS_PLAN_COMMANDS_H_
