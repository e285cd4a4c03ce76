#include "kernels/tensor/host_values.h"

#include <algorithm>
#include <cstring>

#include "glog/logging.h"
#include "kernels/tensor/bfloat16.h"
#include "kernels/tensor/memory.h"

namespace pipelab {
namespace {

void Read(const Tensor& x, void* to) {
  if (x.bytes() == 0) return;
  if (x.on_host()) {
    std::memcpy(to, x.data(), x.bytes());
  } else {
    x.memory()->ToHost(x.data(), to, x.bytes());
  }
}

void Write(const Tensor& x, const void* from, size_t size) {
  CHECK_EQ(static_cast<int64_t>(size), x.size()) << "values for " << ShapeToString(x.shape());
  if (x.bytes() == 0) return;
  if (x.on_host()) {
    std::memcpy(x.data(), from, x.bytes());
  } else {
    x.memory()->FromHost(from, x.data(), x.bytes());
  }
}

void CheckType(const Tensor& x, DataType type) {
  CHECK(x.type() == type) << DataTypeName(x.type()) << " taken for " << DataTypeName(type);
}

}  // namespace

std::vector<float> HostValues(const Tensor& x) {
  if (x.type() == DataType::kBFloat16) {
    std::vector<BFloat16> halves(x.size());
    Read(x, halves.data());
    return std::vector<float>(halves.begin(), halves.end());
  }
  CheckType(x, DataType::kFloat32);
  std::vector<float> values(x.size());
  Read(x, values.data());
  return values;
}

std::vector<int32_t> HostIds(const Tensor& x) {
  CheckType(x, DataType::kInt32);
  std::vector<int32_t> values(x.size());
  Read(x, values.data());
  return values;
}

std::vector<uint16_t> HostHalves(const Tensor& x) {
  CheckType(x, DataType::kBFloat16);
  std::vector<uint16_t> values(x.size());
  Read(x, values.data());
  return values;
}

void SetHostValues(const Tensor& x, absl::Span<const float> values) {
  if (x.type() == DataType::kBFloat16) {
    std::vector<BFloat16> halves(values.size());
    std::copy(values.begin(), values.end(), halves.begin());
    Write(x, halves.data(), halves.size());
    return;
  }
  CheckType(x, DataType::kFloat32);
  Write(x, values.data(), values.size());
}

void SetHostIds(const Tensor& x, absl::Span<const int32_t> values) {
  CheckType(x, DataType::kInt32);
  Write(x, values.data(), values.size());
}

void SetHostHalves(const Tensor& x, absl::Span<const uint16_t> values) {
  CheckType(x, DataType::kBFloat16);
  Write(x, values.data(), values.size());
}

void CopyTensor(const Tensor& from, const Tensor& to) {
  CHECK_EQ(from.bytes(), to.bytes());
  CHECK_EQ(from.on_host(), to.on_host()) << "a copy between the host and a device";
  if (from.bytes() == 0) return;
  if (to.on_host()) {
    std::memcpy(to.data(), from.data(), from.bytes());
  } else {
    to.memory()->Copy(from.data(), to.data(), from.bytes());
  }
}

}  // namespace pipelab
