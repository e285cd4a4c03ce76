// A stream of a real GPU (device.h).
//
//   PIPELAB_ASSIGN_OR_RETURN(std::shared_ptr<gpu::Device> device, gpu::MakeCudaDevice({}));
//
// NotFound, "no CUDA device: ...", where the machine has none or its driver does not serve.
#ifndef PIPELAB_KERNELS_CUDA_CUDA_DEVICE_H_
#define PIPELAB_KERNELS_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"

namespace pipelab {
namespace gpu {

struct CudaOptions {
  int gpu = 0;  // its number
  Precision precision = Precision::kFloat32;
  bool graphs = false;  // device.h
  GraphLimits graph_limits;
};

absl::StatusOr<std::shared_ptr<Device>> MakeCudaDevice(const CudaOptions& options);

absl::StatusOr<int> NumGpus();

struct GpuDescription {
  std::string name;    // "NVIDIA H200"
  int capability = 0;  // 90
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
  int driver = 0, runtime = 0;  // 13000
};
absl::StatusOr<GpuDescription> DescribeGpu(int gpu);

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_CUDA_DEVICE_H_
