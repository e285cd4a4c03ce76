// Runs a program on paper: spans of time, memory and traffic of every device, from a cost table.
//
//   PIPELAB_ASSIGN_OR_RETURN(Program program, Lower(schedule, {}));
//   PIPELAB_ASSIGN_OR_RETURN(Trace trace, Simulate(program, CostTable::Unit(program.schedule)));
//
// Time. A device runs its list in order. Sends and receives take no time of the device (unless
// CostTable::instruction_time says so); a message leaves when its send is over and the one before
// it on the same ordered pair of devices has left, occupies that link for bytes / bandwidth, and
// arrives hop_latency later. A wait ends on arrival. A reduction ends `reduce` after its last
// participant came. A member of a group of d devices takes 1/d of an action's time, a slice
// 1/num_slices; a step is not divided.
//
// Memory follows the semantics in ir/program.h; a trace's peak_activation is the highest level of:
//   receive posted              + message
//   send                        - message
//   forward                     + kept + outputs (when the stage recomputes: + outputs)
//   recompute                   + kept
//   B                           - kept - inputs - output gradients + input gradients
//   I                           as B, + kept_for_weight
//   W                           - kept_for_weight
// with StageMemory's *_peak on top of the level during an action. What stays on the device (an
// output whose consumer is on the same device) is charged once, as the consumer's input. peak_state
// has the older weight versions that live (ir/versions.h).
//
// Deterministic: whole nanoseconds and bytes. O(instructions). Errors: InvalidArgument when the
// table does not fit the program; Internal naming the blocked instruction when the program cannot
// finish, which no lowered schedule does.
#ifndef PIPELAB_PIPELINES_SIM_SIMULATE_H_
#define PIPELAB_PIPELINES_SIM_SIMULATE_H_

#include "absl/status/statusor.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

// `origin` goes into the trace: kSimulated for a cost model, kReplayed for measured times
// (replay.h).
absl::StatusOr<Trace> Simulate(const Program& program, const CostTable& costs,
                               TraceOrigin origin = TraceOrigin::kSimulated);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_SIMULATE_H_
