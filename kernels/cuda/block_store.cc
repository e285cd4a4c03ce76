#include "kernels/cuda/block_store.h"

#include <algorithm>
#include <utility>

namespace pipelab {
namespace gpu {

void* BlockStore::Find(int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (returning_bytes_ > kMostHeldBack) Collect();
  const auto found = kept_.find(bytes);
  if (found == kept_.end() || found->second.empty()) return nullptr;
  void* const data = *found->second.begin();
  found->second.erase(found->second.begin());
  return data;
}

void BlockStore::Keep(void* data, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  kept_[bytes].insert(data);
}

void BlockStore::GiveBack(MemoryBlock block, Fences fences) {
  if (!keeps_) {
    Free(block, std::move(fences));
    return;
  }
  Spoil(block);
  std::lock_guard<std::mutex> lock(mutex_);
  returning_.push_back({block, std::move(fences)});
  returning_bytes_ += block.bytes;
}

void BlockStore::BeginStep() {
  std::lock_guard<std::mutex> lock(mutex_);
  Collect();
}

// What has come back in the meantime.
void BlockStore::Collect() {
  const auto away =
      std::partition(returning_.begin(), returning_.end(), [](const Returning& returning) {
        return !std::all_of(returning.fences.begin(), returning.fences.end(),
                            [](const std::unique_ptr<Fence>& fence) { return fence->passed(); });
      });
  for (auto it = away; it != returning_.end(); ++it) {
    returning_bytes_ -= it->block.bytes;
    kept_[it->block.bytes].insert(it->block.data);
  }
  returning_.erase(away, returning_.end());
}

void BlockStore::FreeKept() {
  std::vector<Returning> all;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    all.swap(returning_);
    returning_bytes_ = 0;
    for (const auto& [bytes, blocks] : kept_) {
      for (void* data : blocks) all.push_back({{data, bytes}, {}});
    }
    kept_.clear();
  }
  for (Returning& returning : all) Free(returning.block, std::move(returning.fences));
  if (!all.empty()) AwaitFrees();
}

void SharedBlock::Release(std::unique_ptr<Fence> fence) {
  Fences fences;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (fence != nullptr) fences_.push_back(std::move(fence));
    if (--users_ > 0) return;
    fences.swap(fences_);
  }
  store_->GiveBack(block_, std::move(fences));
}

}  // namespace gpu
}  // namespace pipelab
