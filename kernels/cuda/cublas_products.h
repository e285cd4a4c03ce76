// Products by cuBLASLt on one stream.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto products, CublasProducts::Create(precision));
//   absl::Status status = products->Run(call, stream);
//
// The algorithm is the library's first choice for the call's sizes, asked once and kept: operands
// are always said to be aligned to kAlignment bytes, which the caller must see to, so the choice,
// and with it the bits, do not depend on addresses.
#ifndef PIPELAB_KERNELS_CUDA_CUBLAS_PRODUCTS_H_
#define PIPELAB_KERNELS_CUDA_CUBLAS_PRODUCTS_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"

namespace pipelab {
namespace gpu {

class CublasProducts {
 public:
  static constexpr int64_t kAlignment = 16;  // bytes

  static absl::StatusOr<std::unique_ptr<CublasProducts>> Create(Precision precision);
  ~CublasProducts();
  CublasProducts(const CublasProducts&) = delete;
  CublasProducts& operator=(const CublasProducts&) = delete;

  // Unimplemented where the library has nothing for this call; nothing is queued then.
  absl::Status Run(const MatmulCall& call, cudaStream_t stream);

 private:
  struct Plan;
  using Key = std::array<int64_t, 16>;

  explicit CublasProducts(Precision precision);
  absl::StatusOr<Plan*> PlanOf(const MatmulCall& call);

  const Precision precision_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_CUBLAS_PRODUCTS_H_
