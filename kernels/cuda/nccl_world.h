// One rank's place among the ranks of an NCCL run: its links to the others, which all begin
// together, and the run's end, of which the GPU must hear.
//
//   NcclWorld world(processes, run, size, device);
//   ... world.NewNames(), to all ...
//   PIPELAB_RETURN_IF_ERROR(world.Connect(names, limit));
//   PIPELAB_ASSIGN_OR_RETURN(auto sent, world.to(1).Send(data, bytes));
//   PIPELAB_RETURN_IF_ERROR(world.Await([&] { return sent->Ready(); }, limit, describe));
//
// Used by the rank's thread. Only kernels/comm uses it.
#ifndef PIPELAB_KERNELS_CUDA_NCCL_WORLD_H_
#define PIPELAB_KERNELS_CUDA_NCCL_WORLD_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/comm/process_group.h"
#include "kernels/comm/wire_head.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/nccl_link.h"
#include "tools/base/status_macros.h"

namespace pipelab {

// Bytes in the device's memory until the last user is gone.
class NcclBytes {
 public:
  NcclBytes(gpu::Device* device, int64_t bytes)
      : device_(device), data_(bytes == 0 ? nullptr : device->Take(bytes)), bytes_(bytes) {}
  ~NcclBytes() {
    if (data_ != nullptr) device_->Give(data_, bytes_, {});
  }
  NcclBytes(const NcclBytes&) = delete;
  NcclBytes& operator=(const NcclBytes&) = delete;
  char* data() const { return static_cast<char*>(data_); }

 private:
  gpu::Device* const device_;
  void* const data_;
  const int64_t bytes_;
};

class NcclWorld {
 public:
  NcclWorld(ProcessGroup* processes, std::shared_ptr<SharedRun> run, int size,
            std::shared_ptr<gpu::Device> device)
      : run_(std::move(run)),
        rank_(processes->rank()),
        size_(size),
        device_(std::move(device)),
        out_(size),
        in_(size),
        beside_(size) {}

  // Names for the links that this rank begins: to each other rank its messages' and, from the lower
  // rank of a pair, their collectives'.
  absl::StatusOr<std::string> NewNames() const;
  absl::Status Connect(const std::vector<std::string>& names, absl::Duration limit);
  // Ends the links: nothing waits on the GPU any more. `abort`: for what would wait for ever.
  void Close(bool abort);

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::shared_ptr<gpu::Device>& device() const { return device_; }
  // Messages to another rank, messages from it, collectives with it.
  NcclLink& to(int other) { return *out_[other]; }
  NcclLink& from(int other) { return *in_[other]; }
  NcclLink& beside(int other) { return *beside_[other]; }

  SharedRun& run() { return *run_; }
  // The run's end, of which the GPU hears here.
  absl::Status CheckRun() {
    if (run_->ended()) AbortLinks();
    return run_->Check();
  }
  // An error of the transport ends the run for all.
  absl::Status OrFail(absl::Status status);

  // What is to be moved on while something is waited for.
  void SetProgress(std::function<absl::Status()> progress) { progress_ = std::move(progress); }
  // Polls ready(), and moves on meanwhile. DeadlineExceeded with describe().
  template <class Ready, class Describe>
  absl::Status Await(const Ready& ready, absl::Duration limit, const Describe& describe) {
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t round = 0;; ++round) {
      PIPELAB_RETURN_IF_ERROR(CheckRun());
      PIPELAB_RETURN_IF_ERROR(progress_());
      PIPELAB_ASSIGN_OR_RETURN(const bool done, ready());
      if (done) return absl::OkStatus();
      if (absl::FromChrono(std::chrono::steady_clock::now() - begin) > limit) {
        return absl::DeadlineExceededError(describe());
      }
      if (round > 100) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

 private:
  void AbortLinks();
  absl::Status AwaitLinks(const std::vector<NcclLink*>& links, absl::Duration limit);

  const std::shared_ptr<SharedRun> run_;
  const int rank_, size_;
  const std::shared_ptr<gpu::Device> device_;
  std::function<absl::Status()> progress_ = [] { return absl::OkStatus(); };
  std::vector<std::unique_ptr<NcclLink>> out_, in_, beside_;  // [other rank]
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_NCCL_WORLD_H_
