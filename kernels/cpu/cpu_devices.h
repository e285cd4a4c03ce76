// The CPU for who makes ranks (kernels/compute_device.h): each has the calling thread's core.
#ifndef PIPELAB_KERNELS_CPU_CPU_DEVICES_H_
#define PIPELAB_KERNELS_CPU_CPU_DEVICES_H_

#include <vector>

#include "kernels/compute_device.h"
#include "kernels/cpu/cpu_backend.h"

namespace pipelab {

inline ComputeDevices CpuDevices() {
  return ComputeDevices([](int count) -> absl::StatusOr<std::vector<ComputeDevice>> {
    return std::vector<ComputeDevice>(count, ComputeDevice{nullptr, &MakeCpuBackend, nullptr});
  });
}

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_CPU_DEVICES_H_
