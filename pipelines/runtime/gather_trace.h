// The trace of a step whose devices are in several processes, put together at process 0.
//
//   PIPELAB_ASSIGN_OR_RETURN(Trace own, executor->RunStep());
//   PIPELAB_ASSIGN_OR_RETURN(Trace all, GatherTrace(group, own, executor->step_begin_ns(), limit));
//
// Times are on process 0's clock (ProcessGroup::clock_offset_ns).
#ifndef PIPELAB_PIPELINES_RUNTIME_GATHER_TRACE_H_
#define PIPELAB_PIPELINES_RUNTIME_GATHER_TRACE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kernels/comm/process_group.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

// Devices of process 0, then of process 1, and so on. At the other processes their own `trace`.
absl::StatusOr<Trace> GatherTrace(ProcessGroup& group, Trace trace, int64_t begin_ns,
                                  absl::Duration limit);

// A trace as bytes and back; DataLoss when they are no trace.
std::string TraceToBytes(const Trace& trace);
absl::StatusOr<Trace> TraceFromBytes(absl::string_view bytes);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_GATHER_TRACE_H_
