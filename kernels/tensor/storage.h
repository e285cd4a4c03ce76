// A block of memory behind tensors, from a process-wide pool.
//
//   auto block = std::make_shared<Storage>(4096);
//   block->data();                          // 64-byte aligned, contents undefined
//
// Freed blocks go to a pool and are handed out again, so that steady training never asks the
// operating system for pages. Thread-safe. Under AddressSanitizer nothing is pooled, so that it
// sees every use after free; builds with assertions fill a new block with NaNs, so that a read of
// undefined contents shows.
#ifndef PIPELAB_KERNELS_TENSOR_STORAGE_H_
#define PIPELAB_KERNELS_TENSOR_STORAGE_H_

#include <cstdint>

#include "tools/base/units.h"

namespace pipelab {

inline constexpr int64_t kStorageAlignment = 64;  // bytes: a cache line, and the widest vector

class Storage {
 public:
  explicit Storage(int64_t bytes);  // 0 is allowed and has no memory; exhaustion is fatal
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }

 private:
  int64_t capacity_;
  void* data_;
};

// The size of the block that serves a request: at most 25% more, and whole cache lines.
int64_t StorageCapacity(int64_t bytes);

// What the pool has taken from the operating system so far, freed blocks included.
Bytes StorageFromSystem();

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_TENSOR_STORAGE_H_
