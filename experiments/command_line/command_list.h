// Every command of pipelab: those that simulate, the page, those about commands, and, without their
// functions, those that train, which programs of their own have (beside.h).
//
//   for (const Command& c : Commands()) std::printf("%s\n", std::string(c.name).c_str());
#ifndef PIPELAB_EXPERIMENTS_COMMAND_LINE_COMMAND_LIST_H_
#define PIPELAB_EXPERIMENTS_COMMAND_LINE_COMMAND_LIST_H_

#include "absl/types/span.h"
#include "experiments/commands/command.h"

namespace pipelab {

absl::Span<const Command> Commands();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMAND_LINE_COMMAND_LIST_H_
