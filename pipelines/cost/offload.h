// Whether what forwards keep can wait in the host's memory for free (Wan et al., "PipeOffload",
// ICML 2025, arXiv 2503.01328, section 3): the copies of a pass, out and back, against its compute.
//
//   OffloadRatio(/*hidden=*/8192, /*sequence=*/4096, FlopsPerSecond(220e12), BytesPerSecond(15e9))
//   OffloadRatio(kept, costs.stages[s], costs.host_bandwidth)      // of any stage
//
// At most 1: the link keeps up with the device, and a schedule that spreads its copies evenly
// (po_f) loses no time. Above 1 at most 1 / ratio of the activations can go; those whose stages
// live the longest first (po_h), which are most of a device's memory.
#ifndef PIPELAB_PIPELINES_COST_OFFLOAD_H_
#define PIPELAB_PIPELINES_COST_OFFLOAD_H_

#include <cstdint>

#include "pipelines/cost/cost_table.h"
#include "tools/base/units.h"

namespace pipelab {

// The ratio of a transformer layer as the paper has it: 20 bytes a token and hidden number are kept
// (16-bit numbers, attention's scores, normalisations, GeLU and dropout not among them), and the
// layer has 12 h^2 parameters. 10 / (3 (6 h + s)) * compute / host.
double OffloadRatio(int64_t hidden, int64_t sequence, FlopsPerSecond compute, BytesPerSecond host);

// The ratio of a stage whose forward keeps so much. 0 where the link is infinite.
double OffloadRatio(Bytes kept, const StageCost& stage, BytesPerSecond host);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_OFFLOAD_H_
