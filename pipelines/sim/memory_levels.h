// What each device's memory is made of, over time and at its peak: what a trace's peak_activation
// and peak_state are the highest of.
//
//   std::vector<std::vector<MemoryPoint>> levels = MemoryLevels(program, costs, trace);
//   MemoryPeak peak = PeakMemory(program, costs, /*device=*/0);        // needs no trace
//   peak.parts.kept;                    // bytes of activations, when the device is fullest
//
// The order of instructions decides the levels and the trace their times, so a measured trace has
// predicted levels at measured times. A device's activations and its state are each at their
// highest at some time: their peaks add up to that of the sum where the state is constant, and to
// more where it is not (gathered parameters, older weight versions). Bytes; O(instructions),
// nothing is stored.
#ifndef PIPELAB_PIPELINES_SIM_MEMORY_LEVELS_H_
#define PIPELAB_PIPELINES_SIM_MEMORY_LEVELS_H_

#include <cstdint>
#include <vector>

#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/state_walk.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

struct MemoryParts {
  StateParts state;  // weights, gradients, optimizer state
  // Activations that forwards keep for their backwards, inputs included; of a running forward, what
  // it keeps so far. A running backward has let go of none.
  Bytes kept;
  // Inputs and output gradients that wait for their action, those of posted receives included;
  // results until they are sent; the terms of a global norm.
  Bytes messages;
  // What the running action has above that: its workspace, its results until it is over, less what
  // it has let go of.
  Bytes action;

  Bytes activation() const { return kept + messages + action; }
  Bytes total() const { return state.total() + activation(); }
};

struct MemoryPoint {
  int64_t time_ns = 0;
  MemoryParts parts;  // from here to the next point
};

// [device] In the order of time; several at one time where the level rises and falls at once. The
// trace is one of the program (trace.h: CheckBelongs), and the table fits it.
std::vector<std::vector<MemoryPoint>> MemoryLevels(const Program& program, const CostTable& costs,
                                                   const Trace& trace);

struct MemoryPeak {
  // The place in the device's list of the instruction during which the device is at its fullest; -1
  // for an empty list.
  int32_t instruction = -1;
  MemoryParts parts;
};

// The first time that the device holds the most. The table fits the program.
MemoryPeak PeakMemory(const Program& program, const CostTable& costs, int device);
std::vector<MemoryPeak> PeakMemory(const Program& program, const CostTable& costs);  // [device]

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_MEMORY_LEVELS_H_
