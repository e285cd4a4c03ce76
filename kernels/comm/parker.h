// Lets one thread sleep until something that other threads bring about.
//
//   // sleeper:                                              // waker:
//   if (!parker.ParkUntil([&] { return flag.load(); }, limit))   flag.store(true);
//     return TimedOut();                                        parker.Unpark();
//
// The condition must be read and made true with sequentially consistent operations: the waker
// stores the condition and then looks whether somebody sleeps, the sleeper says that it sleeps and
// then looks at the condition, so one of them sees the other. Unpark costs one load when nobody
// sleeps.
//
// There are more ranks than cores, as a rule, so a long spin would take the core from the rank that
// is waited for. A few looks catch a partner that is just about done; then the core is offered to
// others a few times, which is cheaper than to sleep and be woken on another core (1.5 against 2.2
// to 7 us of processor time an action in executor_benchmark, 4 ranks on 2 cores); then the thread
// sleeps.
#ifndef PIPELAB_KERNELS_COMM_PARKER_H_
#define PIPELAB_KERNELS_COMM_PARKER_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/time/time.h"

namespace pipelab {

class Parker {
 public:
  // Any thread, after it made the condition true.
  void Unpark() {
    if (!asleep_.load()) return;
    // Taking the lock once means that the sleeper is past its check or inside wait().
    { std::lock_guard<std::mutex> lock(mutex_); }
    wake_.notify_one();
  }

  // The owner. False when `limit` is over and ready() is still false.
  template <typename Ready>
  bool ParkUntil(Ready ready, absl::Duration limit) {
    for (int i = 0; i < kPauses; ++i) {
      if (ready()) return true;
      Pause();
    }
    for (int i = 0; i < kYields; ++i) {
      if (ready()) return true;
      std::this_thread::yield();
    }
    const auto deadline =
        std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(std::min(limit, kForever));
    std::unique_lock<std::mutex> lock(mutex_);
    asleep_.store(true);
    const bool in_time = wake_.wait_until(lock, deadline, ready);
    asleep_.store(false);
    return in_time;
  }

 private:
  static constexpr int kPauses = 4;
  static constexpr int kYields = 20;
  static constexpr absl::Duration kForever = absl::Hours(24 * 365);

  static void Pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  alignas(64) std::atomic<bool> asleep_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_PARKER_H_
