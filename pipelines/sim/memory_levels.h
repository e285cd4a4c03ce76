// How much memory each device holds over time: what a trace's peak_activation is the highest of.
//
//   std::vector<std::vector<MemoryPoint>> levels = MemoryLevels(program, costs, trace);
//
// The order of instructions decides the levels and the trace their times, so a measured trace has
// predicted levels at measured times. Bytes of activations, messages and workspace, as in
// sim/simulate.h; the state that a device has all the time is not part of them.
#ifndef PIPELAB_PIPELINES_SIM_MEMORY_LEVELS_H_
#define PIPELAB_PIPELINES_SIM_MEMORY_LEVELS_H_

#include <cstdint>
#include <vector>

#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

struct MemoryPoint {
  int64_t time_ns = 0;
  Bytes level;  // from here to the next point
};

// [device] In the order of time; several at one time where the level rises and falls at once. The
// trace is one of the program (analysis.h: MatchMessages tells), and the table fits it.
std::vector<std::vector<MemoryPoint>> MemoryLevels(const Program& program, const CostTable& costs,
                                                   const Trace& trace);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_MEMORY_LEVELS_H_
