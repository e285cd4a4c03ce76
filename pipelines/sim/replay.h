// Measured action times on as many processors as the pipeline has devices: what a run on too few
// cores would have taken on enough of them.
//
//   PIPELAB_ASSIGN_OR_RETURN(Trace replayed, Replay(program, measured_traces));
//   double step_seconds = ToSeconds(replayed.makespan);
//
// Each instruction takes the median over the traces of its processor time (Span::cpu_ns), by
// operation:
//   compute, step    its own processor time;
//   send, receive    theirs too: on the device's thread they are real work (matching, posting);
//   wait             none: it ends when its message is there;
//   fill             none: what other jobs did is not of the training;
//   reduce_wait,     its own processor time, begun base.hop_latency after all members have come;
//   gather_wait,     the slowest ends it;
//   norm_wait
//   reduce, gather,  its own processor time.
//   norm, release
// Messages take what `base` says. In one process that is base.hop_latency, the time to hand over a
// message and wake the waiting thread; without it a replay is optimistic about short steps. Memory
// needs `base` (stage memory and edge bytes); without it peak_activation is 0.
//
// Errors: InvalidArgument when a trace does not belong to the program (other devices, spans
// missing).
#ifndef PIPELAB_PIPELINES_SIM_REPLAY_H_
#define PIPELAB_PIPELINES_SIM_REPLAY_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

// A cost table whose instruction_time holds the medians; the rest is `base`.
absl::StatusOr<CostTable> ReplayCosts(const Program& program, absl::Span<const Trace> measured,
                                      CostTable base = {});

// Simulate with ReplayCosts; the trace's origin is kReplayed.
absl::StatusOr<Trace> Replay(const Program& program, absl::Span<const Trace> measured,
                             CostTable base = {});

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_REPLAY_H_
