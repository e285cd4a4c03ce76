// Runs a program under the hardest rules a machine may have, for tests: sends wait for their
// receiver, receives block where they are posted, collectives wait for all members where they begin
// and where they are awaited, and passes that exchange attention run together with all of their
// slot. With such passes, sends and receives are posted and do not wait: SlotWalk promises no more
// (slice_exchange.cc). Shares no code with Lower or the simulator.
//
//   EXPECT_EQ(CheckProgram(program), "");
#ifndef PIPELAB_TESTS_SUPPORT_PROGRAM_CHECKER_H_
#define PIPELAB_TESTS_SUPPORT_PROGRAM_CHECKER_H_

#include <string>

#include "pipelines/ir/program.h"

namespace pipelab {

// Empty, or what is wrong: devices that are stuck; a pass that runs before the rows it needs are
// there and awaited; a message that is sent before its pass; what list_checker.h,
// attention_meetings.h and collective_checker.h say.
std::string CheckProgram(const Program& program);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_PROGRAM_CHECKER_H_
