// The CPU for who makes ranks (kernels/compute_device.h): each has the calling thread's core, or
// `threads` of them.
#ifndef PIPELAB_KERNELS_CPU_CPU_DEVICES_H_
#define PIPELAB_KERNELS_CPU_CPU_DEVICES_H_

#include <vector>

#include "kernels/compute_device.h"
#include "kernels/cpu/cpu_backend.h"

namespace pipelab {

inline ComputeDevices CpuDevices(int threads = 1) {
  return ComputeDevices([threads](int count) -> absl::StatusOr<std::vector<ComputeDevice>> {
    const auto make = [threads](Arena* arena) { return MakeThreadedCpuBackend(arena, threads); };
    return std::vector<ComputeDevice>(count, ComputeDevice{nullptr, make, nullptr});
  });
}

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_CPU_DEVICES_H_
