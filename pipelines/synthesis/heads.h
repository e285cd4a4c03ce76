// Heads and tails: when each pass may begin at the earliest, and what comes after its end at least,
// in any order of the passes. The ground of every bound.
//
//   const Heads heads = ComputeHeads(problem, /*memory=*/true);
//   heads.head[symbol * N + n] + length + heads.tail[symbol * N + n] <= any makespan   // N units
//
// Three rules, in the order of what must come before what:
//  * a pass waits for what it takes, and for the unit before it;
//  * memory: a forward waits for the first I (W) of its stage behind which there can be room for
//    it. At a forward of stage b, an earlier stage a of the device holds the same units and one
//    more, since a's I comes after b's. What may be at the host counts nothing;
//  * one at a time: of passes of its device that must all be over before it, any set takes the
//    set's earliest head and all its work.
// Tails are the heads of the problem run backwards. Copies count nowhere, since none must be made.
#ifndef PIPELAB_PIPELINES_SYNTHESIS_HEADS_H_
#define PIPELAB_PIPELINES_SYNTHESIS_HEADS_H_

#include <cstdint>
#include <vector>

#include "pipelines/synthesis/problem.h"

namespace pipelab {

struct Heads {
  // [symbol][unit] ns; 0 of what is no pass of the problem.
  std::vector<int64_t> head, tail;
};

Heads ComputeHeads(const SynthesisProblem& problem, bool memory);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_HEADS_H_
