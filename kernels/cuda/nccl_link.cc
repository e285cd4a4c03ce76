#include "kernels/cuda/nccl_link.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// A call that NCCL finishes in the background (it opens a connection, say) is waited for so long
// here, unless the run ends; a link whose other end is away answers through Ready().
constexpr auto kSettle = std::chrono::seconds(30);
constexpr auto kFarewell = std::chrono::seconds(2);

absl::Status NcclStatus(ncclResult_t result, absl::string_view what) {
  if (result == ncclSuccess) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("NCCL, ", what, ": ", ncclGetErrorString(result)));
}

absl::Status CudaError(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, ": ", cudaGetErrorString(error)));
}

}  // namespace

NcclEvent::~NcclEvent() {
  if (event_ != nullptr) cudaEventDestroy(event_);
}

absl::Status NcclEvent::Record(cudaStream_t stream) {
  PIPELAB_RETURN_IF_ERROR(
      CudaError(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event"));
  return CudaError(cudaEventRecord(event_, stream), "an event");
}

absl::StatusOr<bool> NcclEvent::Ready() const {
  const cudaError_t error = cudaEventQuery(event_);
  if (error == cudaErrorNotReady) return false;
  PIPELAB_RETURN_IF_ERROR(CudaError(error, "a transfer"));
  return true;
}

NcclLink::~NcclLink() {
  if (comm_ != nullptr) {
    ncclCommFinalize(comm_);
    const auto deadline = std::chrono::steady_clock::now() + kFarewell;
    absl::StatusOr<bool> ready = Ready();
    while (ready.ok() && !*ready && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ready = Ready();
    }
    if (ready.ok() && *ready) {
      ncclCommDestroy(comm_);
    } else {
      ncclCommAbort(comm_);
    }
  }
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

absl::StatusOr<std::string> NcclLink::NewId() {
  ncclUniqueId id;
  PIPELAB_RETURN_IF_ERROR(NcclStatus(ncclGetUniqueId(&id), "a link's name"));
  return std::string(id.internal, sizeof(id.internal));
}

absl::Status NcclLink::Begin(const std::string& id, int end) {
  ncclUniqueId unique;
  if (id.size() != sizeof(unique.internal)) {
    return absl::InternalError("NCCL, a link's name of a wrong length");
  }
  std::memcpy(unique.internal, id.data(), id.size());
  other_ = 1 - end;
  PIPELAB_RETURN_IF_ERROR(
      CudaError(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t begun = ncclCommInitRankConfig(&comm_, 2, unique, end, &config);
  return begun == ncclInProgress ? absl::OkStatus() : NcclStatus(begun, "joining");
}

absl::Status NcclLink::BeginConnect(void* bytes) {
  char* const two = static_cast<char*>(bytes);
  PIPELAB_RETURN_IF_ERROR(NcclStatus(ncclGroupStart(), "connecting"));
  ncclSend(two, 1, ncclUint8, other_, comm_, stream_);
  ncclRecv(two + 1, 1, ncclUint8, other_, comm_, stream_);
  const ncclResult_t begun = ncclGroupEnd();
  return begun == ncclInProgress ? absl::OkStatus() : NcclStatus(begun, "connecting");
}

absl::StatusOr<bool> NcclLink::Ready() const {
  ncclResult_t state = ncclSuccess;
  PIPELAB_RETURN_IF_ERROR(NcclStatus(ncclCommGetAsyncError(comm_, &state), "a link's state"));
  if (state == ncclInProgress) return false;
  PIPELAB_RETURN_IF_ERROR(NcclStatus(state, "a link"));
  return true;
}

absl::Status NcclLink::Settle(ncclResult_t result, const char* what) const {
  if (result != ncclInProgress) return NcclStatus(result, what);
  const auto deadline = std::chrono::steady_clock::now() + kSettle;
  for (;;) {
    PIPELAB_ASSIGN_OR_RETURN(const bool ready, Ready());
    if (ready) return absl::OkStatus();
    PIPELAB_RETURN_IF_ERROR(alive_());
    if (std::chrono::steady_clock::now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat("NCCL, ", what, ": no end in 30 s"));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

NcclLink::Done NcclLink::RecordDone() {
  auto done = std::make_unique<NcclEvent>();
  PIPELAB_RETURN_IF_ERROR(done->Record(stream_));
  return done;
}

NcclLink::Done NcclLink::Send(const void* data, int64_t bytes) {
  if (bytes > 0) {
    PIPELAB_RETURN_IF_ERROR(
        Settle(ncclSend(data, bytes, ncclUint8, other_, comm_, stream_), "a send"));
  }
  return RecordDone();
}

NcclLink::Done NcclLink::Receive(void* data, int64_t bytes) {
  if (bytes > 0) {
    PIPELAB_RETURN_IF_ERROR(
        Settle(ncclRecv(data, bytes, ncclUint8, other_, comm_, stream_), "a receive"));
  }
  return RecordDone();
}

NcclLink::Done NcclLink::Exchange(const void* out, int64_t out_bytes, void* in, int64_t in_bytes) {
  PIPELAB_RETURN_IF_ERROR(NcclStatus(ncclGroupStart(), "an exchange"));
  // In a group calls are only noted; their errors come with its end.
  if (out_bytes > 0) ncclSend(out, out_bytes, ncclUint8, other_, comm_, stream_);
  if (in_bytes > 0) ncclRecv(in, in_bytes, ncclUint8, other_, comm_, stream_);
  PIPELAB_RETURN_IF_ERROR(Settle(ncclGroupEnd(), "an exchange"));
  return RecordDone();
}

void NcclLink::Abort() {
  if (comm_ == nullptr) return;
  ncclCommAbort(comm_);  // frees it, too
  comm_ = nullptr;
}

}  // namespace pipelab
