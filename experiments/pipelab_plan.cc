// `pipelab` starts this for the commands that plan, synthesize and serve (command_line/beside.h).
#include "experiments/command_line/pipelab_main.h"
#include "experiments/plan_commands/plan_commands.h"
#include "experiments/serve/serve_command.h"
#include "tools/base/exhaustion.h"

PIPELAB_HANDLES_EXHAUSTION;

int main(int argc, char** argv) {
  pipelab::LinkPlanCommands();
  pipelab::LinkServeCommand();
  return pipelab::PipelabMain(argc, argv);
}
