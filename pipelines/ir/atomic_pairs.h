// Forwards and backwards that run as one unit, as DualPipe's F&B pairs do on a GPU.
//
//   PIPELAB_ASSIGN_OR_RETURN(Program program, Lower(schedule, {.step = false}));
//   PairForwardBackward(&program);
//   Simulate(program, costs);
//
// A pair is an F directly followed, on its device, by a fused B of another micro-batch. Both start
// when both are ready, the pair takes the sum of their times, and what both send leaves at its end.
// The parts I and W never pair: published schedules with pairs split a backward just where it runs
// alone, and pairing I as well breaks DualPipe's bubble, (P/2 - 1) (F&B + B - 3W).
//
// A backward may need, by way of other devices, the very forward before it (GPipe's last forward
// and first backward): such a pair could never start and falls apart. Which do is found by running
// the order; when no device can go on, the pairs whose forward is ready fall apart, all of them at
// once.
#ifndef PIPELAB_PIPELINES_IR_ATOMIC_PAIRS_H_
#define PIPELAB_PIPELINES_IR_ATOMIC_PAIRS_H_

#include <vector>

#include "pipelines/ir/program.h"

namespace pipelab {

// [device][position in order] Whether a pair begins there. The schedule must be valid.
std::vector<std::vector<char>> FindPairs(const Schedule& schedule);

// [device][instruction] Whether it computes one of a pair.
std::vector<std::vector<char>> FindMergedPasses(const Program& program);

// Moves waits of a pair before it and its sends and releases behind it. `program` comes from Lower.
void PairForwardBackward(Program* program);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_ATOMIC_PAIRS_H_
