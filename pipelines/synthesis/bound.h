// Lower bounds of the makespan, each with its reason and the numbers that it is made of.
//
//   const Bound bound = BestBound(problem);
//   bound.value;                 // ns: no order is shorter
//   ToText(problem, bound);      // "device 3: from 12 ms on 480 ms of work, then 8 ms"
//
// check_proof.h recomputes a bound from the problem with code of its own.
#ifndef PIPELAB_PIPELINES_SYNTHESIS_BOUND_H_
#define PIPELAB_PIPELINES_SYNTHESIS_BOUND_H_

#include <cstdint>
#include <string>

#include "pipelines/synthesis/heads.h"
#include "pipelines/synthesis/problem.h"

namespace pipelab {

enum class BoundReason : uint8_t {
  kPath,    // a pass, what must come before it and what must come after
  kLoad,    // passes of a device: the first begins, all run, the last is followed by the rest
  kMemory,  // the same, and heads or tails wait for room; or:
  // What micro-batches hold, times how long they must, fills the device's room, with as many of
  // them at the host as its link copies in that time.
  kHolding,
};
// "path", "load", "memory", "holding"
const char* BoundReasonName(BoundReason reason);

struct Bound {
  BoundReason reason = BoundReason::kLoad;
  int64_t value = 0;  // head + work + tail
  int device = 0;
  int64_t head = 0, work = 0, tail = 0;
  // kLoad, kMemory: `work` is of the device's passes with at least these heads and tails.
  // kPath: `symbol` and `unit` say which pass.
  int symbol = 0, unit = 0;
};

// The largest of all. `heads`: with memory, where the caller has them.
Bound BestBound(const SynthesisProblem& problem, const Heads* heads = nullptr);

// One line; times in ms.
std::string ToText(const Bound& bound);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_BOUND_H_
