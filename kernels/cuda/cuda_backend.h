// The Backend on a GPU, or on the emulated device: cuBLASLt for products, cuDNN for convolutions,
// own kernels for the rest.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto device, gpu::MakeCudaDevice({}));
//   Arena arena(device);
//   std::unique_ptr<Backend> backend = MakeCudaBackend(&arena, device);
//
// Tensors are the device's (kernels/tensor/host_values.h is the way in and out). Calls are queued;
// what returns a number waits for it. Finish() reports the first fault, and library_ns() is the
// device's time between a first launch and the end of the work, by CUDA events.
#ifndef PIPELAB_KERNELS_CUDA_CUDA_BACKEND_H_
#define PIPELAB_KERNELS_CUDA_CUDA_BACKEND_H_

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/device.h"
#include "kernels/tensor/arena.h"

namespace pipelab {

// The arena's memory must be the device's: CHECKed. `activations` are float32 or bfloat16.
std::unique_ptr<Backend> MakeCudaBackend(Arena* arena, std::shared_ptr<gpu::Device> device,
                                         DataType activations = DataType::kFloat32);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_CUDA_BACKEND_H_
