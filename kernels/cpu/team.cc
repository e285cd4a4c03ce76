#include "kernels/cpu/team.h"

#include <algorithm>
#include <chrono>

namespace pipelab {
namespace cpu {
namespace {

// A kernel follows the one before it at once, as a rule: a helper looks out for it so long before
// it sleeps. Longer, and it takes the processor from threads that have something to do.
constexpr std::chrono::microseconds kLookOut{30};

}  // namespace

Team::~Team() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  begun_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Team::Work(Job* job) {
  for (;;) {
    const int64_t begin = job->next.fetch_add(job->part, std::memory_order_relaxed);
    if (begin >= job->n) return;
    job->body(begin, std::min(begin + job->part, job->n));
  }
}

void Team::Run(int64_t n, int64_t part, Body body) {
  Job job{n, part, body};
  if (threads_ == 1 || n <= part) return Work(&job);
  while (static_cast<int>(helpers_.size()) + 1 < threads_) {
    helpers_.emplace_back([this] { Help(); });
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    job_ = &job;
    number_.fetch_add(1, std::memory_order_relaxed);
  }
  begun_.notify_all();
  Work(&job);
  // Nobody waits for a helper that has not come.
  std::unique_lock<std::mutex> lock(mutex_);
  job_ = nullptr;
  left_.wait(lock, [&] { return job.helpers == 0; });
}

void Team::Help() {
  int64_t seen = 0;
  for (;;) {
    const auto until = std::chrono::steady_clock::now() + kLookOut;
    while (number_.load(std::memory_order_relaxed) == seen &&
           std::chrono::steady_clock::now() < until) {
    }
    std::unique_lock<std::mutex> lock(mutex_);
    begun_.wait(lock, [&] { return ended_ || (job_ != nullptr && number_ != seen); });
    if (ended_) return;
    seen = number_;
    Job* const job = job_;
    ++job->helpers;
    lock.unlock();
    Work(job);
    lock.lock();
    if (--job->helpers == 0) left_.notify_one();
  }
}

}  // namespace cpu
}  // namespace pipelab
