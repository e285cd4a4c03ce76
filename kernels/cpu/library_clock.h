// What a vendor's library costs a device: time inside it, and how much of that brings weights into
// its layout and back.
#ifndef PIPELAB_KERNELS_CPU_LIBRARY_CLOCK_H_
#define PIPELAB_KERNELS_CPU_LIBRARY_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace pipelab {
namespace cpu {

struct LibraryClock {
  int64_t ns = 0;          // everything
  int64_t reorder_ns = 0;  // of that, copies of weights into another layout
  int64_t reorders = 0;    // such copies
};

// Adds its own lifetime to *ns.
class ScopedTimer {
 public:
  explicit ScopedTimer(int64_t* ns) : ns_(ns), start_(std::chrono::steady_clock::now()) {}
  ~ScopedTimer() {
    *ns_ += std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                                 start_)
                .count();
  }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;

 private:
  int64_t* const ns_;
  const std::chrono::steady_clock::time_point start_;
};

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_LIBRARY_CLOCK_H_
