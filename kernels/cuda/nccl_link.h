// Two ranks joined by an NCCL communicator of their own, with a stream: bytes in the order of
// calls.
//
//   auto link = std::make_unique<NcclLink>([run] { return run->Check(); });
//   PIPELAB_RETURN_IF_ERROR(link->Begin(id, /*end=*/0));     // both ends begin, then
//   while (!*link->Ready()) ...                              // poll: the other end may be late
//   PIPELAB_RETURN_IF_ERROR(link->BeginConnect(two_bytes));  // both, and poll again
//   PIPELAB_ASSIGN_OR_RETURN(auto done, link->Send(data, bytes));
//   while (!*done->Ready()) ...
//
// Nothing blocks the calling thread for long. Abort() frees what waits on the GPU.
#ifndef PIPELAB_KERNELS_CUDA_NCCL_LINK_H_
#define PIPELAB_KERNELS_CUDA_NCCL_LINK_H_

#include <cuda_runtime_api.h>

// The library's own header, which ours must not hide.
#include <nccl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pipelab {

// Work on a stream up to some point.
class NcclEvent {
 public:
  NcclEvent() = default;
  ~NcclEvent();
  NcclEvent(const NcclEvent&) = delete;
  NcclEvent& operator=(const NcclEvent&) = delete;

  absl::Status Record(cudaStream_t stream);
  absl::StatusOr<bool> Ready() const;

 private:
  cudaEvent_t event_ = nullptr;
};

class NcclLink {
 public:
  using Done = absl::StatusOr<std::unique_ptr<NcclEvent>>;

  // `alive`: asked while a call waits for NCCL; its error ends the wait, with the run.
  explicit NcclLink(std::function<absl::Status()> alive) : alive_(std::move(alive)) {}
  ~NcclLink();
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  // A fresh name for a link, for both ends.
  static absl::StatusOr<std::string> NewId();

  // `end`: 0 or 1, one each.
  absl::Status Begin(const std::string& id, int end);
  // The first bytes between two ends open the connection, for which NCCL waits for both: here, and
  // not in a send later. `bytes`: two in the device's memory.
  absl::Status BeginConnect(void* bytes);
  // Whether NCCL has done what it was last told; its error.
  absl::StatusOr<bool> Ready() const;

  // To and from the other end, after what was called before. No bytes are no call.
  Done Send(const void* data, int64_t bytes);
  Done Receive(void* data, int64_t bytes);
  // Both at once.
  Done Exchange(const void* out, int64_t out_bytes, void* in, int64_t in_bytes);

  void Abort();

 private:
  absl::Status Settle(ncclResult_t result, const char* what) const;
  Done RecordDone();

  const std::function<absl::Status()> alive_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  int other_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_NCCL_LINK_H_
