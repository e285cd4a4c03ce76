// The gaps of a training step: where each device waits, for how long, and how much memory is free
// there. What other jobs can use (PipeFill: Arfeen et al., "PipeFill: Using GPUs During Bubbles in
// Pipeline-parallel LLM Training", MLSys 2025).
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<DeviceGaps> gaps,
//                            FindGaps(program, costs, trace, /*device_memory=*/Bytes(16 << 30)));
//   gaps[0].gaps[2].length();  gaps[0].gaps[2].free;  gaps[0].gaps[2].kind;
//
// Any program and any trace of it, simulated or measured: nothing here knows schemes. A device is
// idle while it waits for messages or collectives, between two instructions, before its first and
// after its last one, and while it runs other jobs. Neighbouring idle times are one gap, where
// nothing that other devices wait for stands between them. All else is busy, calls that hand over
// messages included, so that gaps and busy time are the step's time to the nanosecond. Within
// the interval of the bubble (analysis/analysis.h), gaps are the bubble less such calls and steps.
//
// Memory is predicted (sim/memory_levels.h): what the device holds at the most during the gap is
// not free. Nanoseconds, bytes. Errors: InvalidArgument for a trace that is not the program's.
#ifndef PIPELAB_PIPELINES_FILL_GAPS_H_
#define PIPELAB_PIPELINES_FILL_GAPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "tools/base/units.h"

namespace pipelab {

enum class GapKind : uint8_t {
  kFillDrain,        // before the device's first pass or after its last one
  kForwardBackward,  // from a forward to a backward
  kBetweenPasses,    // between other passes
  kReduction,        // waiting for a reduction, a gather or the global norm
};
const char* GapKindName(GapKind kind);  // "fill-drain"

struct Gap {
  int device = 0;
  int64_t begin_ns = 0, end_ns = 0;
  Bytes free;  // all the time; 0 where the step alone needs more than there is
  GapKind kind = GapKind::kFillDrain;
  // The instruction of the device's list in front of which a fill goes, or the fill that is there:
  // the first wait in the gap, or what comes after it; the list's length at its end.
  int32_t instruction = 0;
  Nanoseconds filled;  // of which other jobs ran

  Nanoseconds length() const { return Nanoseconds(end_ns - begin_ns); }
};

struct DeviceGaps {
  std::vector<Gap> gaps;  // in the order of time
  Nanoseconds busy, idle;
  Bytes always_free;  // while the device is at its fullest
};

// [device] `device_memory` is what one device has.
absl::StatusOr<std::vector<DeviceGaps>> FindGaps(const Program& program, const CostTable& costs,
                                                 const Trace& trace, Bytes device_memory);

// "gap 3 of device 1 (fill-drain, 12.0 ms, 4.00 GiB free)".
std::string GapName(const Gap& gap, int number);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_FILL_GAPS_H_
