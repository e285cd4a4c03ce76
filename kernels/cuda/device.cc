#include "kernels/cuda/device.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/cuda/functions.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {
namespace gpu {
namespace {

Element ElementOf(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return Element::kFloat32;
    case DataType::kInt32:
      return Element::kInt32;
    case DataType::kBFloat16:
      return Element::kBFloat16;
  }
  LOG(FATAL) << "unknown data type " << static_cast<int>(type);
}

}  // namespace

void Device::Fail(absl::Status why) {
  std::lock_guard<std::mutex> lock(status_mutex_);
  if (!status_.ok()) return;
  status_ = std::move(why);
  failed_.store(true, std::memory_order_release);
}

absl::Status Device::status() const {
  std::lock_guard<std::mutex> lock(status_mutex_);
  return status_;
}

// --- Work.

void Device::Record(const Work& work) {
  std::lock_guard<std::mutex> lock(work_mutex_);
  if (failed()) return;
  if (issuing_ == Issuing::kAtOnce) {
    BeginWork();
    absl::Status done = Do(work);
    if (!done.ok()) Fail(std::move(done));
    return;
  }
  if (list_.empty()) {
    std::lock_guard<std::mutex> after(after_mutex_);
    pending_ = true;
    list_thread_ = std::this_thread::get_id();
  }
  list_.Add(work);
}

std::unique_lock<std::mutex> Device::IssueAndLock() {
  std::unique_lock<std::mutex> lock(work_mutex_);
  if (list_.empty()) return lock;
  BeginWork();
  // A capture is for the device's own thread, which alone takes memory meanwhile.
  const bool graphs = has_graphs() && !failed() && list_thread_ == std::this_thread::get_id();
  absl::Status issued;
  if (graphs) {
    issued = graphs_.Issue(list_, this);
  } else {
    for (int i = 0; i < list_.size() && issued.ok(); ++i) issued = Do(list_[i]);
  }
  if (!issued.ok()) Fail(std::move(issued));
  list_.Clear();
  std::vector<std::function<void()>> calls;
  {
    std::lock_guard<std::mutex> after(after_mutex_);
    pending_ = false;
    calls.swap(after_);
  }
  for (const auto& call : calls) call();
  return lock;
}

// Held meanwhile: so that nothing is captured.
void Device::AfterIssue(std::function<void()> call) {
  std::lock_guard<std::mutex> after(after_mutex_);
  if (pending_) {
    after_.push_back(std::move(call));
  } else {
    call();
  }
}

void Device::Add(const KernelWork& work) {
  Record({WorkKind::kKernel, work.name, work.entry, const_cast<void*>(work.arguments), work.bytes});
}

void Device::Clear(void* to, int64_t bytes) {
  if (bytes > 0) Record(WorkKind::kFill, "clearing memory", FillWork{to, bytes, 0});
}

void Device::Copy(const void* from, void* to, int64_t bytes) {
  if (bytes > 0) Record(WorkKind::kCopy, "a copy", CopyWork{from, to, bytes});
}

// --- Memory.

// Close sizes become one: the driver rounds up as well.
int64_t Device::BlockBytes(int64_t bytes) const {
  constexpr int64_t kStep = 512;
  return store_->keeps() && !spoils() ? (bytes + kStep - 1) / kStep * kStep : bytes;
}

void* Device::Take(int64_t bytes) {
  if (failed()) return nullptr;
  const int64_t size = BlockBytes(bytes);
  void* data = store_->keeps() ? store_->Find(size) : nullptr;
  if (data == nullptr) {
    absl::StatusOr<void*> made = NewBlock(size);
    if (!made.ok() && store_->keeps()) {  // what is kept may be of other sizes
      Issue();
      Wait();
      store_->FreeKept();
      made = NewBlock(size);
    }
    if (!made.ok()) {
      Fail(made.status());
      return nullptr;
    }
    data = *made;
  }
  CountTaken(bytes);
  if (spoils()) Record(WorkKind::kFill, "a new block", FillWork{data, bytes, 0xFF});
  return data;
}

void Device::Give(void* data, int64_t bytes, absl::Span<const Memory::Shared> others) {
  CountTaken(-bytes);
  const MemoryBlock block = {data, BlockBytes(bytes)};
  if (others.empty()) {
    if (spoils()) Record(WorkKind::kFill, "a block's end", FillWork{data, bytes, 0xFF});
    if (store_->keeps()) {
      store_->Keep(data, block.bytes);
    } else {
      AfterIssue([this, block] { FreeOwn(block); });
    }
    return;
  }
  const auto shared =
      std::make_shared<SharedBlock>(store_, block, 1 + static_cast<int>(others.size()));
  const auto release = [&shared](Device* user) {
    user->AfterIssue([shared, user] { shared->Release(user->MakeFence()); });
  };
  release(this);
  for (const Memory::Shared& other : others) release(static_cast<Device*>(other.get()));
}

void Device::CountTaken(int64_t bytes) {
  const int64_t now = taken_.fetch_add(bytes) + bytes;
  int64_t peak = peak_taken_.load();
  while (now > peak && !peak_taken_.compare_exchange_weak(peak, now)) {
  }
}

void* Device::Grow(Buffer* buffer, int64_t bytes) {
  if (failed()) return nullptr;
  if (buffer->bytes >= bytes) return buffer->data;
  if (buffer->data != nullptr) Give(buffer->data, buffer->bytes, {});
  buffer->data = Take(bytes);
  buffer->bytes = buffer->data == nullptr ? 0 : bytes;
  return buffer->data;
}

void Device::GiveBackBuffers() {
  for (Buffer* buffer : {&scratch_, &result_, &ids_, &numbers_}) {
    if (buffer->data != nullptr) Give(buffer->data, buffer->bytes, {});
    *buffer = Buffer();
  }
  Issue();
  Wait();
  graphs_.Clear();
}

void Device::Reduce(MemoryReduction reduction, absl::Span<const void* const> inputs,
                    absl::Span<void* const> outputs, DataType type, int64_t begin, int64_t count) {
  CHECK_LE(inputs.size(), kMostCopies);
  CHECK_LE(outputs.size(), kMostCopies);
  Copies copies = {};  // its bytes are compared
  copies.inputs = static_cast<int>(inputs.size());
  copies.outputs = static_cast<int>(outputs.size());
  std::copy(inputs.begin(), inputs.end(), copies.in);
  std::copy(outputs.begin(), outputs.end(), copies.out);
  const auto reduce = reduction == MemoryReduction::kMax ? &LargestOfCopies : &SumOfCopies;
  reduce(*this, copies, ElementOf(type), begin, count);
}

double Device::ReadResult() {
  double value = NAN;
  if (!failed() && result_.data != nullptr) ToHost(result_.data, &value, sizeof(value));
  return failed() ? NAN : value;
}

const int32_t* Device::Upload(absl::Span<const int32_t> values) {
  if (values.empty()) return nullptr;
  const int64_t bytes = static_cast<int64_t>(values.size()) * 4;
  void* const to = Grow(&ids_, bytes);
  if (to != nullptr) FromHost(values.data(), to, bytes);
  return static_cast<const int32_t*>(to);
}

const float* Device::Upload(absl::Span<const float> values) {
  if (values.empty()) return nullptr;
  const int64_t bytes = static_cast<int64_t>(values.size()) * 4;
  void* const to = Grow(&numbers_, bytes);
  if (to != nullptr) FromHost(values.data(), to, bytes);
  return static_cast<const float*>(to);
}

}  // namespace gpu
}  // namespace pipelab
