// What `pipelab` starts for the commands that train (command_line/beside.h).
#include "experiments/command_line/pipelab_main.h"
#include "experiments/plan_commands/plan_commands.h"
#include "experiments/run/run_commands.h"
#include "experiments/serve/serve_command.h"
#include "experiments/training/optimizer_flags.h"
#include "tools/base/exhaustion.h"

PIPELAB_HANDLES_EXHAUSTION;

int main(int argc, char** argv) {
  pipelab::RegisterOptimizerFlags();
  pipelab::LinkPlanCommands();
  pipelab::LinkServeCommand();
  pipelab::LinkRunCommands();
  return pipelab::PipelabMain(argc, argv);
}
