#include "kernels/tensor/storage.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "tools/base/exhaustion.h"

namespace pipelab {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kPooled = false;
#else
constexpr bool kPooled = true;
#endif

constexpr int64_t kHugePage = int64_t{2} << 20;

struct Pool {
  std::mutex mutex;
  std::unordered_map<int64_t, std::vector<void*>> free_blocks;  // by capacity
  int64_t from_system = 0;
};

// Never destroyed: threads that end after main() may still free blocks.
Pool& GlobalPool() {
  static Pool* const pool = new Pool;
  return *pool;
}

void* TakeFromSystem(int64_t capacity) {
  // A block of several huge pages starts on one: fewer TLB misses in the large matmuls.
  const bool huge = capacity >= 2 * kHugePage;
  void* block =
      std::aligned_alloc(huge ? kHugePage : kStorageAlignment,
                         huge ? (capacity + kHugePage - 1) / kHugePage * kHugePage : capacity);
  if (block == nullptr) EndWithout("memory", absl::StrCat("a block of ", capacity, " bytes"));
  if (huge) madvise(block, capacity, MADV_HUGEPAGE);  // advice: a refusal costs speed only
  return block;
}

void* Take(int64_t capacity) {
  Pool& pool = GlobalPool();
  {
    std::lock_guard<std::mutex> lock(pool.mutex);
    auto it = pool.free_blocks.find(capacity);
    if (it != pool.free_blocks.end() && !it->second.empty()) {
      void* block = it->second.back();
      it->second.pop_back();
      return block;
    }
    pool.from_system += capacity;
  }
  return TakeFromSystem(capacity);
}

void Give(void* block, int64_t capacity) {
  Pool& pool = GlobalPool();
  std::lock_guard<std::mutex> lock(pool.mutex);
  pool.free_blocks[capacity].push_back(block);
}

}  // namespace

int64_t StorageCapacity(int64_t bytes) {
  CHECK_GE(bytes, 0);
  // Four size classes between powers of two.
  int64_t step = kStorageAlignment;
  while (8 * step < bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

Bytes StorageFromSystem() {
  Pool& pool = GlobalPool();
  std::lock_guard<std::mutex> lock(pool.mutex);
  return Bytes(pool.from_system);
}

Storage::Storage(int64_t bytes, Memory::Shared memory)
    : memory_(std::move(memory)),
      capacity_(memory_ == nullptr ? StorageCapacity(bytes) : bytes),
      data_(nullptr) {
  if (capacity_ == 0) return;
  if (memory_ != nullptr) {
    data_ = memory_->Take(capacity_);
    return;
  }
  data_ = Take(capacity_);
#ifndef NDEBUG
  std::memset(data_, 0xFF, capacity_);  // NaN as float, -1 as int
#endif
}

Storage::~Storage() {
  if (data_ == nullptr) return;
  if (memory_ != nullptr) {
    memory_->Give(data_, capacity_, users_);
  } else if (kPooled) {
    Give(data_, capacity_);
  } else {
    std::free(data_);
  }
}

void Storage::AddUser(const Memory::Shared& device) {
  if (memory_ == nullptr || device == nullptr || device == memory_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (std::find(users_.begin(), users_.end(), device) == users_.end()) users_.push_back(device);
}

}  // namespace pipelab
