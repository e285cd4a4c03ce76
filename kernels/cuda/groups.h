// The parts of the CUDA backend, and how they take tensors.
#ifndef PIPELAB_KERNELS_CUDA_GROUPS_H_
#define PIPELAB_KERNELS_CUDA_GROUPS_H_

#include <cstdint>
#include <memory>

#include "glog/logging.h"
#include "kernels/backend.h"
#include "kernels/cuda/device.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/bfloat16.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {
namespace gpu {

template <class T>
inline constexpr DataType kTypeOf = DataType::kFloat32;
template <>
inline constexpr DataType kTypeOf<int32_t> = DataType::kInt32;
template <>
inline constexpr DataType kTypeOf<BFloat16> = DataType::kBFloat16;

// Addresses in the device's memory; null for an empty tensor, which is of any type.
template <class T>
T* DataOf(const Tensor& x) {
  CHECK(x.type() == kTypeOf<T> || x.empty())
      << DataTypeName(x.type()) << " taken for " << DataTypeName(kTypeOf<T>);
  CHECK(!x.on_host() || x.size() == 0) << "the host's memory given to a device";
  return static_cast<T*>(x.data());
}
inline float* Data(const Tensor& x) { return DataOf<float>(x); }
inline const int32_t* Ids(const Tensor& x) { return DataOf<int32_t>(x); }

// Calls f with what takes addresses of the type that activations have here, of which `x` is one:
//
//   ByType(x, [&](auto at) { gpu::Gelu(*device_, at(x), x.size(), at(y)); });
template <class T>
struct DataAt {
  T* operator()(const Tensor& x) const { return DataOf<T>(x); }
};
template <class F>
auto ByType(const Tensor& x, const F& f) {
  return x.type() == DataType::kBFloat16 ? f(DataAt<BFloat16>()) : f(DataAt<float>());
}

std::unique_ptr<AttentionKernels> MakeAttentionKernels(Arena* arena, Device* device);
std::unique_ptr<BatchNormKernels> MakeBatchNormKernels(Device* device);
std::unique_ptr<ConvolutionKernels> MakeConvolutionKernels(Arena* arena, Device* device);
std::unique_ptr<EmbeddingKernels> MakeEmbeddingKernels(Device* device);
std::unique_ptr<ExpertKernels> MakeExpertKernels(Device* device);
std::unique_ptr<GraphKernels> MakeGraphKernels(Device* device);
std::unique_ptr<LossKernels> MakeLossKernels(Device* device);
std::unique_ptr<OptimizerKernels> MakeOptimizerKernels(Device* device);
std::unique_ptr<PoolingKernels> MakePoolingKernels(Device* device);
std::unique_ptr<QuantizedKernels> MakeQuantizedKernels(Device* device);

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_GROUPS_H_
