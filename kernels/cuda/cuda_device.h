// A stream of a real GPU (device.h).
//
//   PIPELAB_ASSIGN_OR_RETURN(std::shared_ptr<gpu::Device> device, gpu::MakeCudaDevice({}));
//
// NotFound, "no CUDA device: ...", where the machine has none or its driver does not serve.
#ifndef PIPELAB_KERNELS_CUDA_CUDA_DEVICE_H_
#define PIPELAB_KERNELS_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
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

// NumGpus() is the first call of CUDA that a program makes: it asks for as many hardware queues as
// there can be (CUDA_DEVICE_MAX_CONNECTIONS, unless the environment says it), since work of a
// stream waits behind another's where two share one; NCCL has three streams a pair of ranks
// (nccl.h).
absl::StatusOr<int> NumGpus();

// FailedPrecondition naming two of `gpus` of which one cannot reach the other's memory: devices of
// one process hand tensors over where they lie (HandOver in kernels/tensor/arena.h).
absl::Status CheckPeerAccess(absl::Span<const int> gpus);

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
