// Devices by their names, whatever the build has.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto devices, gpu::MakeDevices("cuda", 4));   // on the GPUs in turn
//
// "cuda" needs a build with --config=cuda, and a GPU: NotFound, "no CUDA device: ...". "emulated"
// (device.h) is in builds without it.
#ifndef PIPELAB_KERNELS_CUDA_DEVICES_H_
#define PIPELAB_KERNELS_CUDA_DEVICES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/compute_device.h"
#include "kernels/cuda/device.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {
namespace gpu {

// The numbers that devices compute with.
struct NumberFormat {
  Precision products = Precision::kFloat32;   // of float32 factors
  DataType activations = DataType::kFloat32;  // and parameters in layers; masters are float32
};

struct DeviceOptions {
  NumberFormat format;
  bool graphs = false;  // device.h
  GraphLimits graph_limits;
};

// Device i is on GPU i modulo their number: several streams share one where there are fewer. Of
// several processes on a host (mpirun, srun) the n-th begins with GPU n.
absl::StatusOr<std::vector<std::shared_ptr<Device>>> MakeDevices(absl::string_view name, int count,
                                                                 const DeviceOptions& options = {});

// The same with their backends, for who trains. With graphs they count lists of work
// (graph_cache.h).
ComputeDevices CudaDevices(absl::string_view name, const DeviceOptions& options = {});

// "fp32", "tf32" or "bf16".
absl::StatusOr<NumberFormat> ParsePrecision(absl::string_view text);

// Any device of this build, for checks: the GPU, or the emulated one.
absl::string_view DefaultDeviceName();

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_DEVICES_H_
