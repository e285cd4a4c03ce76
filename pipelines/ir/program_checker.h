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

// Empty, or what is wrong: devices that are stuck; a pair whose receives are not in the order of
// its sends; a message that is not sent, posted and waited for exactly once; a compute that runs
// before the rows it needs are there; a list whose computes are not the schedule's order; a fill
// that is not there exactly once, or plans more than it may take; what collective_checker.h says.
std::string CheckProgram(const Program& program);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_PROGRAM_CHECKER_H_
