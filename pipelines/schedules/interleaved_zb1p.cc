// Interleaved ZB-1P (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, arXiv 2401.10241; in
// practice PyTorch's ScheduleInterleavedZeroBubble): interleaved 1F1B over V stages a device, with
// the backward split as in ZB-H1. Half of the interleaved warm-up on the way down suffices, because
// an input gradient returns in I and not in I + W; the W that device d puts off by d
// stage passes fill its drain.
//
// Micro-batches go in groups of at least P (a device runs a group through its first stage, then
// through its second, and so on): M / P groups as equal as can be, the larger ones first. Fewer
// than P micro-batches are one group, and wait for one another. Peak (V - 1)g + P for groups of g.
#include <algorithm>
#include <vector>

#include "pipelines/schedules/schemes.h"

namespace pipelab {

absl::StatusOr<Schedule> MakeInterleavedZb1p(const SchemeParams& params) {
  const int devices = params.devices, chunks = params.chunks, m = params.micro_batches;
  const int groups = std::max(1, m / devices);
  Schedule schedule = LoopedPipeline(params);
  for (int d = 0; d < devices; ++d) {
    std::vector<Action> forwards, inputs;
    forwards.reserve(static_cast<size_t>(m) * chunks);
    inputs.reserve(forwards.capacity());
    for (int group = 0, begin = 0, end; group < groups; ++group, begin = end) {
      end = begin + m / groups + (group < m % groups ? 1 : 0);
      for (int chunk = 0; chunk < chunks; ++chunk) {
        for (int i = begin; i < end; ++i) {
          forwards.push_back(Forward(chunk * devices + d, i));
          inputs.push_back(BackwardInput((chunks - 1 - chunk) * devices + d, i));
        }
      }
    }
    const int largest = (m + groups - 1) / groups;
    const int warm_up = (chunks - 1) * largest + devices - 1 - d;
    schedule.order[d] = SplitOneForwardOneBackward(forwards, inputs, warm_up, /*lag=*/d);
  }
  return schedule;
}

}  // namespace pipelab
