#include "kernels/tensor/arena.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "glog/logging.h"
#include "kernels/tensor/storage.h"

namespace pipelab {
namespace {

bool IsTransient(MemoryKind kind) {
  return kind == MemoryKind::kActivation || kind == MemoryKind::kWorkspace;
}

template <class Counts>
int64_t TransientBytes(const Counts& current) {
  return current[static_cast<int>(MemoryKind::kActivation)] +
         current[static_cast<int>(MemoryKind::kWorkspace)];
}

template <class Counts>
int64_t StateBytes(const Counts& current) {
  return current[static_cast<int>(MemoryKind::kParameter)] +
         current[static_cast<int>(MemoryKind::kGradient)] +
         current[static_cast<int>(MemoryKind::kOptimizer)];
}

}  // namespace

Arena::Arena(Memory::Shared memory) : memory_(std::move(memory)) {}

Arena::~Arena() {
  CHECK_EQ(live_charges_, 0) << "an arena ends before the tensors that it pays for";
}

Tensor Arena::Allocate(DataType type, Shape shape, MemoryKind kind) {
  const int64_t bytes = NumElements(shape) * SizeOf(type);
  return Tensor(type, std::move(shape), std::make_shared<Storage>(bytes, memory_),
                std::make_shared<Charge>(this, kind, bytes));
}

Tensor Arena::Zeros(DataType type, Shape shape, MemoryKind kind) {
  Tensor tensor = Allocate(type, std::move(shape), kind);
  if (tensor.bytes() == 0) return tensor;
  if (memory_ == nullptr) {
    std::memset(tensor.data(), 0, tensor.bytes());
  } else {
    memory_->Clear(tensor.data(), tensor.bytes());
  }
  return tensor;
}

std::shared_ptr<Charge> Arena::Reserve(Bytes bytes, MemoryKind kind) {
  return std::make_shared<Charge>(this, kind, bytes.value());
}

Bytes Arena::current(MemoryKind kind) const { return Bytes(current_[static_cast<int>(kind)]); }
Bytes Arena::peak(MemoryKind kind) const { return Bytes(peak_[static_cast<int>(kind)]); }
Bytes Arena::current_transient() const { return Bytes(TransientBytes(current_)); }
Bytes Arena::peak_transient() const { return Bytes(peak_transient_); }
Bytes Arena::peak_state() const { return Bytes(peak_state_); }

void Arena::ResetPeaks() {
  peak_ = current_;
  peak_transient_ = TransientBytes(current_);
  peak_state_ = StateBytes(current_);
}

void Arena::Add(MemoryKind kind, int64_t bytes) {
  const int k = static_cast<int>(kind);
  current_[k] += bytes;
  peak_[k] = std::max(peak_[k], current_[k]);
  if (IsTransient(kind)) {
    peak_transient_ = std::max(peak_transient_, TransientBytes(current_));
  } else {
    peak_state_ = std::max(peak_state_, StateBytes(current_));
  }
}

Charge::Charge(Arena* arena, MemoryKind kind, int64_t bytes)
    : arena_(arena), kind_(kind), bytes_(bytes) {
  CHECK_GE(bytes, 0);
  ++arena_->live_charges_;
  arena_->Add(kind_, bytes_);
}

Charge::~Charge() {
  arena_->Add(kind_, -bytes_);
  --arena_->live_charges_;
}

Tensor HandOver(Tensor tensor, std::shared_ptr<Charge> charge) {
  if (charge != nullptr && !tensor.empty()) {
    CHECK_EQ(tensor.on_host(), charge->memory() == nullptr)
        << "a tensor of " << (tensor.on_host() ? "the host" : "a device") << " handed over to "
        << (tensor.on_host() ? "a device" : "the host") << " without a copy";
    tensor.storage()->AddUser(charge->memory());
  }
  return std::move(tensor).Adopt(std::move(charge));
}

}  // namespace pipelab
