// A block of memory behind tensors, from a process-wide pool or a device.
//
//   auto block = std::make_shared<Storage>(4096);
//   block->data();                          // 64-byte aligned, contents undefined
//   auto block = std::make_shared<Storage>(4096, device);   // memory.h: an address of the device's
//
// Freed blocks go to a pool and are handed out again, so that steady training never asks the
// operating system for pages. Thread-safe. Under AddressSanitizer nothing is pooled, so that it
// sees every use after free; builds with assertions fill a new block with NaNs, so that a read of
// undefined contents shows. What a device does with freed blocks is its own affair.
#ifndef PIPELAB_KERNELS_TENSOR_STORAGE_H_
#define PIPELAB_KERNELS_TENSOR_STORAGE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/tensor/memory.h"
#include "tools/base/units.h"

namespace pipelab {

inline constexpr int64_t kStorageAlignment = 64;  // bytes: a cache line, and the widest vector

class Storage {
 public:
  // 0 is allowed and has no memory; the host's exhaustion is fatal.
  explicit Storage(int64_t bytes, Memory::Shared memory = nullptr);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  Memory* memory() const { return memory_.get(); }  // null: the host's

  // Another device that works on it from now on: the block is not reused before its work is done.
  // From any thread.
  void AddUser(const Memory::Shared& device);

 private:
  const Memory::Shared memory_;
  int64_t capacity_;
  void* data_;
  std::mutex mutex_;
  std::vector<Memory::Shared> users_;  // besides memory_; guarded by mutex_
};

// The size of the block that serves a request: at most 25% more, and whole cache lines.
int64_t StorageCapacity(int64_t bytes);

// What the pool has taken from the operating system so far, freed blocks included.
Bytes StorageFromSystem();

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_TENSOR_STORAGE_H_
