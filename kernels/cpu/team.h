// Threads that share one kernel's rows: the caller and its helpers, which sleep between kernels.
//
//   Team team(2);
//   team.Run(rows, 256, [&](int64_t begin, int64_t end) { ... });   // rows [begin, end)
//
// Parts begin at multiples of `part` for any number of threads, and each is computed by one of
// them. So what a part writes is the same bits whoever computes it. Thread-compatible.
#ifndef PIPELAB_KERNELS_CPU_TEAM_H_
#define PIPELAB_KERNELS_CPU_TEAM_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace pipelab {
namespace cpu {

class Team {
 public:
  using Body = absl::FunctionRef<void(int64_t begin, int64_t end)>;

  // At least one thread; helpers start with the first work for them.
  explicit Team(int threads) : threads_(threads) {}
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Returns when all parts are done. `body` runs on several threads at a time.
  void Run(int64_t n, int64_t part, Body body);

 private:
  struct Job {
    const int64_t n, part;
    const Body body;
    std::atomic<int64_t> next{0};
    int helpers = 0;  // at work on it; guarded by mutex_
  };
  static void Work(Job* job);
  void Help();

  const int threads_;
  std::mutex mutex_;
  std::condition_variable begun_, left_;
  Job* job_ = nullptr;              // guarded by mutex_
  bool ended_ = false;              // guarded by mutex_
  std::atomic<int64_t> number_{0};  // of jobs so far
  std::vector<std::thread> helpers_;
};

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_TEAM_H_
