// The orders and counts of a program's lists, without running them; part of CheckProgram.
//
//   EXPECT_EQ(CheckLists(program), "");
#ifndef PIPELAB_TESTS_SUPPORT_LIST_CHECKER_H_
#define PIPELAB_TESTS_SUPPORT_LIST_CHECKER_H_

#include <string>

#include "pipelines/ir/program.h"

namespace pipelab {

// Empty, or the first thing that is wrong:
//  * a message that is not of the pass that it says, or not sent, posted and awaited exactly once;
//  * a pair whose receives are not in the order of its sends;
//  * a list whose passes, copies to the host or own steps are not the schedule's order;
//  * a copy to the host that is not awaited where program.h says, a call that is not whole;
//  * a fill that is not there exactly once, or plans more than it may take.
std::string CheckLists(const Program& program);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_LIST_CHECKER_H_
