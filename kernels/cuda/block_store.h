// Blocks of a device's memory that were given back, kept by size until they are taken again: so a
// step of training gets the addresses of the step before it, and its graphs serve (graph_cache.h).
//
//   std::shared_ptr<BlockStore> store = ...;      // of a kind of device
//   void* block = store->Find(4096);              // null: none is kept
//   store->Keep(block, 4096);                     // behind the work on it that is queued
//   auto back = std::make_shared<SharedBlock>(store, MemoryBlock{block, 4096}, /*users=*/2);
//   back->Release(fence);                         // each user; the last one gives it back
//
// The lowest of the kept ones is found, in whatever order they came: a step that begins with the
// same blocks taken as the step before it takes the same ones again. Thread-safe.
#ifndef PIPELAB_KERNELS_CUDA_BLOCK_STORE_H_
#define PIPELAB_KERNELS_CUDA_BLOCK_STORE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace pipelab {
namespace gpu {

// A place in a device's work.
class Fence {
 public:
  virtual ~Fence() = default;
  virtual bool passed() const = 0;  // does not wait
};
using Fences = std::vector<std::unique_ptr<Fence>>;

struct MemoryBlock {
  void* data = nullptr;
  int64_t bytes = 0;
};

class BlockStore {
 public:
  // Without `keeps`, blocks that come back are freed.
  explicit BlockStore(bool keeps) : keeps_(keeps) {}
  virtual ~BlockStore() = default;

  bool keeps() const { return keeps_; }
  void* Find(int64_t bytes);
  void Keep(void* data, int64_t bytes);
  // Once the fences are passed. Such blocks come back at any time, so they are found in the next
  // step (or where they are more than kMostHeldBack bytes together): what a step finds must not
  // depend on when.
  void GiveBack(MemoryBlock block, Fences fences);
  void BeginStep();
  // Frees all that is kept; destructors of derived classes do so, when no work is left.
  void FreeKept();

  // Memory back to where it is from, behind the fences.
  virtual void Free(MemoryBlock block, Fences fences) = 0;

 protected:
  // What several users were done with, for stores that want uses after that to show.
  virtual void Spoil(const MemoryBlock&) {}
  virtual void AwaitFrees() {}

 private:
  struct Returning {
    MemoryBlock block;
    Fences fences;
  };

  static constexpr int64_t kMostHeldBack = int64_t{256} << 20;

  void Collect();

  const bool keeps_;
  std::mutex mutex_;
  absl::flat_hash_map<int64_t, std::set<void*>> kept_;  // by size
  std::vector<Returning> returning_;
  int64_t returning_bytes_ = 0;
};

// A block that several devices work on.
class SharedBlock {
 public:
  SharedBlock(std::shared_ptr<BlockStore> store, MemoryBlock block, int users)
      : store_(std::move(store)), block_(block), users_(users) {}

  // One of them is done with it once `fence` is passed; null: is done.
  void Release(std::unique_ptr<Fence> fence);

 private:
  const std::shared_ptr<BlockStore> store_;
  const MemoryBlock block_;
  std::mutex mutex_;
  int users_;
  Fences fences_;
};

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_BLOCK_STORE_H_
