#include "experiments/run/run_commands.h"

namespace pipelab {

void LinkRunCommands() {
  LinkCommand("generate", &GenerateCommand);
  LinkCommand("logits", &LogitsCommand);
  LinkCommand("run", &RunCommand);
  LinkCommand("swarm", &SwarmCommand);
}

}  // namespace pipelab
