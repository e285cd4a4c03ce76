// main() of `pipelab` and of the programs that have more commands, which they link first.
//
//   int main(int argc, char** argv) {
//     pipelab::LinkCommand("serve", &pipelab::ServeCommand);
//     return pipelab::PipelabMain(argc, argv);
//   }
#ifndef PIPELAB_EXPERIMENTS_COMMAND_LINE_PIPELAB_MAIN_H_
#define PIPELAB_EXPERIMENTS_COMMAND_LINE_PIPELAB_MAIN_H_

namespace pipelab {

// A command that this program has not linked starts the program that has it (beside.h).
int PipelabMain(int argc, char** argv);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMAND_LINE_PIPELAB_MAIN_H_
