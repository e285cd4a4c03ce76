// Memory of a GPU for one device, from a pool of the device's own, in the order of its stream.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::shared_ptr<CudaBlocks> blocks, CudaBlocks::Create(gpu, keeps));
//   PIPELAB_ASSIGN_OR_RETURN(void* data, blocks->New(bytes, stream));
//
// Blocks that several devices have worked on are freed through a stream of their own, which waits
// for all of these, so that no device waits for another one's work.
#ifndef PIPELAB_KERNELS_CUDA_CUDA_BLOCKS_H_
#define PIPELAB_KERNELS_CUDA_CUDA_BLOCKS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/block_store.h"

namespace pipelab {
namespace gpu {

// Recorded on a stream.
class CudaFence final : public Fence {
 public:
  // Null where it failed.
  static std::unique_ptr<Fence> Record(cudaStream_t stream);
  ~CudaFence() override { cudaEventDestroy(event_); }

  bool passed() const override { return cudaEventQuery(event_) != cudaErrorNotReady; }
  cudaEvent_t event() const { return event_; }

 private:
  explicit CudaFence(cudaEvent_t event) : event_(event) {}
  const cudaEvent_t event_;
};

class CudaBlocks final : public BlockStore {
 public:
  static absl::StatusOr<std::shared_ptr<CudaBlocks>> Create(int gpu, bool keeps);
  ~CudaBlocks() override;

  absl::StatusOr<void*> New(int64_t bytes, cudaStream_t stream);
  absl::Status FreeInOrder(const MemoryBlock& block, cudaStream_t stream);
  void Free(MemoryBlock block, Fences fences) override;
  int64_t peak_reserved() const;

 private:
  CudaBlocks(int gpu, bool keeps) : BlockStore(keeps), gpu_(gpu) {}
  absl::Status Open();
  absl::Status LetOthersIn();
  void AwaitFrees() override { cudaStreamSynchronize(free_stream_); }

  const int gpu_;
  cudaMemPool_t pool_ = nullptr;
  cudaStream_t free_stream_ = nullptr;
};

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_CUDA_BLOCKS_H_
