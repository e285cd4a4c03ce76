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

void Device::NoteLaunch(const char* kernel, int cuda_error) {
  Fail(absl::InternalError(absl::StrCat(kernel, ": ", LaunchErrorName(cuda_error))));
}

void Device::Fail(absl::Status why) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!status_.ok()) return;
  status_ = std::move(why);
  failed_.store(true, std::memory_order_release);
}

absl::Status Device::status() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return status_;
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
}

void Device::Reduce(MemoryReduction reduction, absl::Span<const void* const> inputs,
                    absl::Span<void* const> outputs, DataType type, int64_t begin, int64_t count) {
  CHECK_LE(inputs.size(), kMostCopies);
  CHECK_LE(outputs.size(), kMostCopies);
  Copies copies;
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
