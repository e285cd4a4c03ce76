#include "pipelines/runtime/host_copier.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "kernels/tensor/memory.h"
#include "tools/base/clocks.h"

namespace pipelab {
namespace {

void CopyBytes(const Tensor& from, const Tensor& to) {
  if (!from.on_host()) {
    from.memory()->ToHost(from.data(), to.data(), from.bytes());
  } else if (!to.on_host()) {
    to.memory()->FromHost(from.data(), to.data(), from.bytes());
  } else {
    std::memcpy(to.data(), from.data(), static_cast<size_t>(from.bytes()));
  }
}

}  // namespace

HostCopier::~HostCopier() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  begun_.notify_one();
  thread_.join();
}

absl::Status HostCopier::Begin(bool reload, const std::vector<Tensor*>& tensors) {
  Copy copy;
  for (Tensor* tensor : tensors) {
    if (tensor->empty()) continue;
    const auto same = std::find_if(copy.from.begin(), copy.from.end(), [&](const Tensor& t) {
      return t.storage() == tensor->storage();
    });
    const size_t source = static_cast<size_t>(same - copy.from.begin());
    if (source == copy.from.size()) {
      Arena* arena = reload ? device_ : &host_;
      copy.to.push_back(arena->Allocate(tensor->type(), tensor->shape(), MemoryKind::kActivation));
      copy.from.push_back(*tensor);
      copy.bytes += tensor->bytes();
    } else if (same->data() != tensor->data() || same->bytes() != tensor->bytes()) {
      return absl::UnimplementedError("a stage keeps two parts of one tensor");
    }
    copy.tensors.push_back(tensor);
    copy.source.push_back(source);
  }
  copy.reload = reload;
  bytes_ += Bytes(copy.bytes);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    copies_.push_back(std::move(copy));
  }
  if (thread_.joinable()) {
    begun_.notify_one();
  } else {
    thread_ = std::thread([this] { Run(); });
  }
  return absl::OkStatus();
}

void HostCopier::Wait(int32_t number) {
  Copy& copy = copies_[static_cast<size_t>(number)];
  {
    std::unique_lock<std::mutex> lock(mutex_);
    over_.wait(lock, [&] { return over_count_ > static_cast<size_t>(number); });
  }
  for (size_t i = 0; i < copy.tensors.size(); ++i) {
    const Tensor& moved = copy.to[copy.source[i]];
    *copy.tensors[i] = moved.Reshape(copy.tensors[i]->shape());
  }
  for (Tensor* tensor : copy.tensors) {
    if (copy.reload) {
      at_host_.erase(tensor);
    } else {
      at_host_.insert(tensor);
    }
  }
  copy.from.clear();
  copy.to.clear();
}

void HostCopier::Reset() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    over_.wait(lock, [&] { return over_count_ == copies_.size(); });
    over_count_ = 0;
    copies_.clear();
  }
  for (Tensor* tensor : at_host_) *tensor = Tensor();
  at_host_.clear();
  bytes_ = Bytes(0);
  host_.ResetPeaks();
}

void HostCopier::Run() {
  while (true) {
    Copy* copy = nullptr;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      begun_.wait(lock, [&] { return stop_ || over_count_ < copies_.size(); });
      if (stop_) return;
      copy = &copies_[over_count_];
    }
    Move(copy);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ++over_count_;
    }
    over_.notify_one();
  }
}

void HostCopier::Move(Copy* copy) {
  copy->times.begin_ns = WallNs();
  for (size_t i = 0; i < copy->from.size(); ++i) CopyBytes(copy->from[i], copy->to[i]);
  if (bandwidth_.value() > 0) {
    const double ns = static_cast<double>(copy->bytes) / bandwidth_.value() * 1e9;
    const int64_t end = copy->times.begin_ns + std::llround(ns);
    std::unique_lock<std::mutex> lock(mutex_);
    begun_.wait_for(lock, std::chrono::nanoseconds(std::max<int64_t>(0, end - WallNs())),
                    [&] { return stop_; });
  }
  copy->times.end_ns = WallNs();
}

}  // namespace pipelab
