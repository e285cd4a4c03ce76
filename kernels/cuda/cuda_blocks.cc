#include "kernels/cuda/cuda_blocks.h"

#include <limits>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/cuda/cuda_status.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace gpu {

std::unique_ptr<Fence> CudaFence::Record(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) return nullptr;
  std::unique_ptr<Fence> fence = absl::WrapUnique(new CudaFence(event));
  return cudaEventRecord(event, stream) == cudaSuccess ? std::move(fence) : nullptr;
}

absl::StatusOr<std::shared_ptr<CudaBlocks>> CudaBlocks::Create(int gpu, bool keeps) {
  std::shared_ptr<CudaBlocks> blocks(new CudaBlocks(gpu, keeps));
  PIPELAB_RETURN_IF_ERROR(blocks->Open());
  return blocks;
}

absl::Status CudaBlocks::Open() {
  PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(gpu_), absl::StrCat("GPU ", gpu_)));
  PIPELAB_RETURN_IF_ERROR(
      CudaStatus(cudaStreamCreateWithFlags(&free_stream_, cudaStreamNonBlocking), "a stream"));
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = gpu_;
  PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaMemPoolCreate(&pool_, &properties), "a memory pool"));
  uint64_t keep = std::numeric_limits<uint64_t>::max();  // blocks stay between steps
  PIPELAB_RETURN_IF_ERROR(CudaStatus(
      cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), "a memory pool"));
  return LetOthersIn();
}

// Devices of this process on other GPUs read and write these blocks. Where the machine cannot, a
// process has devices on one of the two GPUs only: CheckPeerAccess, which who makes devices asks.
absl::Status CudaBlocks::LetOthersIn() {
  int gpus = 0;
  PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaGetDeviceCount(&gpus), "the number of GPUs"));
  for (int other = 0; other < gpus; ++other) {
    int can = 0;
    if (other == gpu_) continue;
    PIPELAB_RETURN_IF_ERROR(CudaStatus(cudaDeviceCanAccessPeer(&can, other, gpu_),
                                       absl::StrCat("whether GPU ", other, " reaches GPU ", gpu_)));
    if (can == 0) continue;
    cudaMemAccessDesc access = {};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = other;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    PIPELAB_RETURN_IF_ERROR(
        CudaStatus(cudaMemPoolSetAccess(pool_, &access, 1), absl::StrCat("access of GPU ", other)));
  }
  return absl::OkStatus();
}

// What is still lent out is gone by the callers' rule that tensors end before their devices.
CudaBlocks::~CudaBlocks() {
  cudaSetDevice(gpu_);
  FreeKept();
  if (free_stream_ != nullptr) {
    cudaStreamSynchronize(free_stream_);
    cudaStreamDestroy(free_stream_);
  }
  if (pool_ != nullptr) cudaMemPoolDestroy(pool_);
}

absl::StatusOr<void*> CudaBlocks::New(int64_t bytes, cudaStream_t stream) {
  void* data = nullptr;
  const cudaError_t error = cudaMallocFromPoolAsync(&data, bytes, pool_, stream);
  if (error == cudaSuccess) return data;
  cudaGetLastError();  // it would come out of a later launch
  return CudaStatus(error, absl::StrCat(bytes, " bytes of GPU ", gpu_, "'s memory"));
}

absl::Status CudaBlocks::FreeInOrder(const MemoryBlock& block, cudaStream_t stream) {
  return CudaStatus(cudaFreeAsync(block.data, stream), "a block's return");
}

// A fault here is a fault of the GPU, which the next launch reports.
void CudaBlocks::Free(MemoryBlock block, Fences fences) {
  cudaSetDevice(gpu_);
  for (const std::unique_ptr<Fence>& fence : fences) {
    cudaStreamWaitEvent(free_stream_, static_cast<const CudaFence&>(*fence).event(), 0);
  }
  if (cudaFreeAsync(block.data, free_stream_) != cudaSuccess) {
    LOG(ERROR) << "GPU " << gpu_ << " did not take a block of " << block.bytes << " bytes back";
  }
}

int64_t CudaBlocks::peak_reserved() const {
  uint64_t bytes = 0;
  cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &bytes);
  return static_cast<int64_t>(bytes);
}

}  // namespace gpu
}  // namespace pipelab
