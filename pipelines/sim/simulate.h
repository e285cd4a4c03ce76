// Simulates a program: spans of time, memory and traffic of every device, from a cost table.
//
//   PIPELAB_ASSIGN_OR_RETURN(Program program, Lower(schedule, {}));
//   PIPELAB_ASSIGN_OR_RETURN(Trace trace, Simulate(program, CostTable::Unit(program.schedule)));
//
// Time. A device runs its list in order. Sends and receives take none of the device's time (unless
// CostTable::instruction_time says so); a message leaves when its send has ended and the message
// before it on the same ordered pair of devices has left, occupies the links of its path for bytes
// / bandwidth, and arrives the path's latency later. Messages and collectives that are on one link
// at a time share its bandwidth (transfers.h). A wait ends on arrival. Reductions, gathers and the
// global norm run beside compute, one at a time on a device, each from when its last member begins
// it, or waits for it (collective_timeline.h). The members of a group all take the time of a
// stage's cost, which is that of one member's rows; a token slice takes its own
// (CostTable::slices), or 1/num_slices; a step is divided only where parameters are sharded. A
// device of speed s takes 1/s of the time of actions and steps.
//
// A fill takes what its plan's pieces take, and a device goes on behind it: waits that are longer
// than their fills end when they would without.
//
// Without CostTable::overlap a device either computes or sends and receives, as with Megatron-LM's
// batched blocking calls; with CostTable::steady_overlap so before its first backward (or input
// backward) and behind its last forward. A send occupies its device until the message has arrived,
// whether or not the receiver waits for it already. What a device does between two actions is one
// exchange; in it, sends follow one another, and receives run beside them: a wait ends on arrival,
// but not before the exchange has lasted as long as the message was on its way. So a message that
// arrived during compute still costs its receiver that time.
//
// What is offloaded, and reloaded, goes over the device's host link at CostTable::host_bandwidth,
// one copy after the other, beside everything else (DeviceTrace::host_copies); a kHostWait ends
// with its copy.
//
// In calls (Program::calls), a message leaves when both its ends have reached it. A device
// continues when all messages of the call have arrived at their receivers, those in parts have been
// gathered, one after the other, and CostTable::launch_gap has passed. CostTable::overlap then says
// nothing.
//
// Memory follows the semantics in ir/program.h; a trace's peak_activation is the highest level of:
//   receive posted              + message
//   send                        - message
//   forward                     + kept + outputs (when the stage recomputes: + outputs)
//   recompute                   + kept
//   B                           - kept - inputs - output gradients + input gradients
//   I                           as B, + kept_for_weight
//   W                           - kept_for_weight
//   wait for an offload         - kept - inputs
//   reload                      + kept + inputs
//   norm, norm_wait             + and - four bytes a parameter value and copy on the device
// A token slice's forward keeps kept_when_dropped all the same when the stage recomputes, which its
// recompute then does not add, and its B or I adds `carried`. All of that comes
// with StageMemory's *_peak on top of the level during an action. What stays on the device (an
// output whose consumer is on the same device) is charged once, as the consumer's input. Where the
// rows of an input come in several parts, putting them together takes the input's size for a moment
// (reshard_memory.h). Times and bytes of a stage are of one device's rows of one of its own
// micro-batches, those of edges of a whole one of the smallest (CostTable). peak_state has the
// older weight versions that live (ir/versions.h) and what is put together of sharded parameters
// (cost/sharded_state.h).
//
// Each device of the program stands for CostTable::tensor_parallel ones, a tensor-parallel group:
// its times, memory and messages are those of one, and tensor_bytes what one sends within the
// group.
//
// Deterministic: whole nanoseconds and bytes. O(instructions), on shared links times the messages
// under way on them. Errors: InvalidArgument when the table does not fit the program, or has times
// that are too long (IsTooLong); Internal naming the blocked instruction when the program cannot
// finish, which no lowered schedule does.
#ifndef PIPELAB_PIPELINES_SIM_SIMULATE_H_
#define PIPELAB_PIPELINES_SIM_SIMULATE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

// `origin` goes into the trace: kSimulated for a cost model, kReplayed for measured times
// (replay.h).
absl::StatusOr<Trace> Simulate(const Program& program, const CostTable& costs,
                               TraceOrigin origin = TraceOrigin::kSimulated);
// The same makespan, and of each device the memory and what it sends in messages and collectives;
// no spans and no tensor traffic. For searches, a fifth faster.
absl::StatusOr<Trace> SimulateTotals(const Program& program, const CostTable& costs);

// InvalidArgument that says that times are more than can be counted, which is the fault of who gave
// them, and no other has this mark.
absl::Status TooLong(absl::string_view message);
bool IsTooLong(const absl::Status& status);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_SIMULATE_H_
