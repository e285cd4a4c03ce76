// The parts of the CUDA backend, and how they take tensors.
#ifndef PIPELAB_KERNELS_CUDA_GROUPS_H_
#define PIPELAB_KERNELS_CUDA_GROUPS_H_

#include <cstdint>
#include <memory>

#include "glog/logging.h"
#include "kernels/backend.h"
#include "kernels/cuda/device.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {
namespace gpu {

// Addresses in the device's memory; null for an empty tensor.
inline float* Data(const Tensor& x) {
  CHECK(x.type() == DataType::kFloat32) << DataTypeName(x.type()) << " taken for float32";
  CHECK(!x.on_host() || x.size() == 0) << "the host's memory given to a device";
  return static_cast<float*>(x.data());
}
inline const int32_t* Ids(const Tensor& x) {
  CHECK(x.type() == DataType::kInt32) << DataTypeName(x.type()) << " taken for int32";
  CHECK(!x.on_host() || x.size() == 0) << "the host's memory given to a device";
  return static_cast<const int32_t*>(x.data());
}

std::unique_ptr<AttentionKernels> MakeAttentionKernels(Arena* arena, Device* device);
std::unique_ptr<BatchNormKernels> MakeBatchNormKernels(Device* device);
std::unique_ptr<ConvolutionKernels> MakeConvolutionKernels(Arena* arena, Device* device);
std::unique_ptr<EmbeddingKernels> MakeEmbeddingKernels(Device* device);
std::unique_ptr<LossKernels> MakeLossKernels(Device* device);
std::unique_ptr<OptimizerKernels> MakeOptimizerKernels(Device* device);
std::unique_ptr<PoolingKernels> MakePoolingKernels(Device* device);

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_GROUPS_H_
