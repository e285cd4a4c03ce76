// An unbounded queue from one thread to another, without locks: the mail of one ordered pair of
// ranks.
//
//   SpscQueue<Envelope> mail;
//   mail.Push(std::move(envelope));               // producer
//   if (mail.pushed() > n) e = mail.Pop();        // consumer, for its n-th message
//
// Push and pushed() are sequentially consistent, as Parker (parker.h) needs. Items live in blocks,
// so that a message costs no allocation of its own.
#ifndef PIPELAB_KERNELS_COMM_SPSC_QUEUE_H_
#define PIPELAB_KERNELS_COMM_SPSC_QUEUE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

namespace pipelab {

template <typename T>
class SpscQueue {
 public:
  SpscQueue() = default;
  ~SpscQueue() {
    Block* block = popped_ == 0 ? first_ : head_;
    while (block != nullptr) delete std::exchange(block, block->next);
  }
  SpscQueue(const SpscQueue&) = delete;
  SpscQueue& operator=(const SpscQueue&) = delete;

  // Producer.
  void Push(T item) {
    const int64_t n = pushed_.load(std::memory_order_relaxed);
    if (n % kBlock == 0) {
      Block* block = new Block;
      (n == 0 ? first_ : tail_->next) = block;
      tail_ = block;
    }
    tail_->items[n % kBlock] = std::move(item);
    pushed_.store(n + 1);  // publishes the item and the links to it
  }

  // Items pushed so far; any thread.
  int64_t pushed() const { return pushed_.load(); }

  // Consumer; needs pushed() > the number of pops so far.
  T Pop() {
    if (popped_ == 0) {
      head_ = first_;
    } else if (popped_ % kBlock == 0) {
      delete std::exchange(head_, head_->next);
    }
    return std::move(head_->items[popped_++ % kBlock]);
  }

 private:
  static constexpr int64_t kBlock = 16;
  struct Block {
    std::array<T, kBlock> items;
    Block* next = nullptr;
  };

  // Producer's and consumer's fields on cache lines of their own.
  alignas(64) std::atomic<int64_t> pushed_{0};
  Block* tail_ = nullptr;
  Block* first_ = nullptr;  // written before the first publication, then constant
  alignas(64) Block* head_ = nullptr;
  int64_t popped_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_SPSC_QUEUE_H_
