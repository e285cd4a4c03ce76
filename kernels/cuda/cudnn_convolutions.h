// Convolutions by cuDNN on one stream.
//
//   auto convolutions = std::make_unique<CudnnConvolutions>(precision);
//   PIPELAB_ASSIGN_OR_RETURN(bool served, convolutions->Run(call, stream));
//
// It takes the first of the library's algorithms, in its order of preference, that gives the same
// bits each time and fits the workspace. The library is asked once for each shape, pass and type.
// Addresses are multiples of 16 bytes.
#ifndef PIPELAB_KERNELS_CUDA_CUDNN_CONVOLUTIONS_H_
#define PIPELAB_KERNELS_CUDA_CUDNN_CONVOLUTIONS_H_

#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"

namespace pipelab {
namespace gpu {

class CudnnConvolutions {
 public:
  explicit CudnnConvolutions(Precision precision);
  ~CudnnConvolutions();
  CudnnConvolutions(const CudnnConvolutions&) = delete;
  CudnnConvolutions& operator=(const CudnnConvolutions&) = delete;

  // False where no algorithm serves; nothing is queued then.
  absl::StatusOr<bool> Run(const ConvolutionCall& call, cudaStream_t stream);
  // Whether a call of these sizes was served before, and so will be again.
  bool HasRun(const ConvolutionCall& call) const;

 private:
  struct Plan;
  using Key = std::array<int64_t, 13>;

  static Key KeyOf(const ConvolutionCall& call);
  absl::StatusOr<Plan*> PlanOf(const ConvolutionCall& call);
  absl::Status Choose(const ConvolutionCall& call, Plan* plan);
  template <class Performance>
  static void TakeFirstThatFits(const std::vector<Performance>& offers, int64_t workspace_bytes,
                                Plan* plan);

  const Precision precision_;
  cudnnHandle_t handle_ = nullptr;  // made with the first call: it takes a while
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_CUDNN_CONVOLUTIONS_H_
