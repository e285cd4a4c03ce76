// One device's copies to the host's memory and back, on a thread of their own, one after the other.
//
//   HostCopier copier(&arena, /*bandwidth=*/BytesPerSecond(12e9));
//   copier.Begin(/*reload=*/false, kept);       // kept: the tensors that a stage keeps
//   ... the device computes ...
//   copier.Wait(0);                             // *kept[i] now lies in the host's memory
//   copier.Begin(/*reload=*/true, kept);        // the device pays for it from here on
//   copier.Wait(1);                             // and back
//
// Copies are numbered from 0 in the order of Begin. A copy takes at least its bytes / bandwidth, so
// that a link slower than this machine's memory can be played; what it moves is real all the same.
// Until Wait the tensors stay where they are, and must not be written to. Tensors that share all of
// their memory are copied once and share it again; others that overlap are refused.
//
// Begin and Wait are the device's thread's; the copies use the arenas' memory alone.
#ifndef PIPELAB_PIPELINES_RUNTIME_HOST_COPIER_H_
#define PIPELAB_PIPELINES_RUNTIME_HOST_COPIER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/tensor.h"
#include "tools/base/units.h"

namespace pipelab {

class HostCopier {
 public:
  // Tensors come back to `device`, which must outlive it. A bandwidth of 0 is no limit.
  HostCopier(Arena* device, BytesPerSecond bandwidth) : device_(device), bandwidth_(bandwidth) {}
  ~HostCopier();  // drops what is not over

  // What the pointers point to must stay there until Wait. Unimplemented: tensors that overlap.
  absl::Status Begin(bool reload, const std::vector<Tensor*>& tensors);
  void Wait(int32_t copy);
  // When a finished copy ran, on the steady clock.
  struct Times {
    int64_t begin_ns = 0, end_ns = 0;
  };
  Times TimesOf(int32_t copy) const { return copies_[copy].times; }

  Bytes peak_host() const { return host_.peak_transient(); }
  Bytes bytes() const { return bytes_; }  // there and back
  // Between steps: numbers begin at 0 again. What an error left at the host is empty afterwards.
  void Reset();

 private:
  struct Copy {
    bool reload = false;
    std::vector<Tensor*> tensors;
    std::vector<size_t> source;    // [tensor] in `from` and `to`
    std::vector<Tensor> from, to;  // no two of the same memory
    int64_t bytes = 0;
    Times times;
  };

  void Run();
  void Move(Copy* copy);

  Arena host_;
  Arena* const device_;
  const BytesPerSecond bandwidth_;
  Bytes bytes_;
  std::set<Tensor*> at_host_;

  std::mutex mutex_;
  std::condition_variable begun_, over_;
  std::deque<Copy> copies_;  // in their order; elements stay where they are
  size_t over_count_ = 0;    // of them
  bool stop_ = false;
  std::thread thread_;  // from the first copy on
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_HOST_COPIER_H_
