// What `pipelab` starts for the commands that train (command_line/beside.h).
#include "experiments/command_line/pipelab_main.h"
#include "experiments/run/run_commands.h"
#include "experiments/training/optimizer_flags.h"

int main(int argc, char** argv) {
  pipelab::RegisterOptimizerFlags();
  return pipelab::PipelabMain(argc, argv,
                              {{"generate", &pipelab::GenerateCommand},
                               {"logits", &pipelab::LogitsCommand},
                               {"run", &pipelab::RunCommand},
                               {"swarm", &pipelab::SwarmCommand}});
}
