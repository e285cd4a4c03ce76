// Where the stages of a chain may live: the freedom of placement.
//
//   BalancedDevices(work, speeds, {0, 1, 2, 3, 3, 2, 1, 0})   // [stage] -> device
#ifndef PIPELAB_PIPELINES_SYNTHESIS_PLACEMENTS_H_
#define PIPELAB_PIPELINES_SYNTHESIS_PLACEMENTS_H_

#include <cstdint>
#include <vector>

namespace pipelab {

// Cuts the stages into as many runs as `visits` has devices, in that order, so that the device with
// the most work / speed has little of it. Each run has a stage at least. `work`: [stage] ns of one
// micro-batch; `speeds`: [device].
std::vector<int> BalancedDevices(const std::vector<int64_t>& work,
                                 const std::vector<double>& speeds, const std::vector<int>& visits);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_PLACEMENTS_H_
