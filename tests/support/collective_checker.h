// Whether each device's list begins, awaits and uses collectives as program.h says; part of
// CheckProgram.
//
//   EXPECT_EQ(CheckCollectives(program), "");
#ifndef PIPELAB_TESTS_SUPPORT_COLLECTIVE_CHECKER_H_
#define PIPELAB_TESTS_SUPPORT_COLLECTIVE_CHECKER_H_

#include <string>
#include <vector>

#include "pipelines/ir/program.h"

namespace pipelab {

// Empty, or the first thing that is wrong:
//  * a collective that a member does not begin and await exactly once, or another device does;
//  * a copy that does not step as often as the schedule says, or else once where any steps;
//  * a pass of a stage that has taken its only step;
//  * a weight gradient added to what is being summed, or summed and not yet stepped;
//  * a step of a copy whose gradients are not summed with all others, ties included;
//  * an action on weights that are not there, a release of weights that are not there, weights that
//    stay over a step;
//  * values that are not put together again after a step on parts;
//  * a norm that is not of all gradients once, summed over all copies, or a step before it.
std::string CheckCollectives(const Program& program);

// Who takes part in the collective that an instruction begins or awaits; null where it is of none.
const std::vector<StageCopy>* MembersOf(const Program& program, const Instruction& i);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_COLLECTIVE_CHECKER_H_
