// main() of `pipelab` and of pipelab_train, which has all that `pipelab` has and the commands that train.
//
//   int main(int argc, char** argv) {
//     return pipelab::PipelabMain(argc, argv, {{"run", &pipelab::RunCommand}});
//   }
#ifndef PIPELAB_EXPERIMENTS_COMMAND_LINE_PIPELAB_MAIN_H_
#define PIPELAB_EXPERIMENTS_COMMAND_LINE_PIPELAB_MAIN_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "experiments/commands/command.h"

namespace pipelab {

// A command that this program has linked, of those without a function in Commands().
struct LinkedCommand {
  absl::string_view name;
  absl::Status (*run)(const Words& words);
};

// With none of them, commands that train start pipelab_train (beside.h).
int PipelabMain(int argc, char** argv, absl::Span<const LinkedCommand> training);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMAND_LINE_PIPELAB_MAIN_H_
