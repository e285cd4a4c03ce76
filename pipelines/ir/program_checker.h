// Runs a program under the hardest rules a machine may have, for tests: sends wait for their
// receiver, receives block where they are posted, collectives wait for all members where they begin
// and where they are awaited. Shares no code with Lower or the simulator.
//
//   EXPECT_EQ(CheckProgram(program), "");
#ifndef PIPELAB_PIPELINES_IR_PROGRAM_CHECKER_H_
#define PIPELAB_PIPELINES_IR_PROGRAM_CHECKER_H_

#include <string>

#include "pipelines/ir/program.h"

namespace pipelab {

// Empty, or what is wrong: devices that are stuck; a pass that runs before the rows it needs are
// there and awaited; a message that is sent before its pass; what list_checker.h and
// collective_checker.h say.
std::string CheckProgram(const Program& program);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_PROGRAM_CHECKER_H_
