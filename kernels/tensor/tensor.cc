#include "kernels/tensor/tensor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "kernels/tensor/storage.h"

namespace pipelab {

int64_t SizeOf(DataType type) {
  switch (type) {
    case DataType::kFloat32:
    case DataType::kInt32:
      return 4;
    case DataType::kBFloat16:
      return 2;
  }
  LOG(FATAL) << "unknown data type " << static_cast<int>(type);
}

const char* DataTypeName(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return "float32";
    case DataType::kInt32:
      return "int32";
    case DataType::kBFloat16:
      return "bfloat16";
  }
  LOG(FATAL) << "unknown data type " << static_cast<int>(type);
}

int64_t NumElements(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) {
    CHECK_GE(d, 0) << "shape " << ShapeToString(shape);
    CHECK(!__builtin_mul_overflow(n, d, &n)) << "shape " << ShapeToString(shape);
  }
  return n;
}

std::string ShapeToString(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

Tensor::Tensor(DataType type, Shape shape, std::shared_ptr<Storage> storage,
               std::shared_ptr<Charge> charge)
    : type_(type),
      shape_(std::move(shape)),
      size_(NumElements(shape_)),
      data_(storage->data()),
      storage_(std::move(storage)),
      charge_(std::move(charge)) {}

Tensor::Tensor() = default;
Tensor::~Tensor() = default;
Tensor::Tensor(const Tensor&) = default;
Tensor& Tensor::operator=(const Tensor&) = default;

Tensor::Tensor(Tensor&& other) noexcept { *this = std::move(other); }

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  if (this == &other) return *this;
  type_ = other.type_;
  shape_ = other.shape_;
  size_ = std::exchange(other.size_, 0);
  data_ = std::exchange(other.data_, nullptr);
  storage_ = std::move(other.storage_);
  charge_ = std::move(other.charge_);
  other.shape_.clear();
  return *this;
}

Memory* Tensor::memory() const { return storage_ == nullptr ? nullptr : storage_->memory(); }

absl::Span<float> Tensor::f32() const {
  CHECK(type_ == DataType::kFloat32) << "a float32 tensor is needed, not " << DataTypeName(type_);
  CHECK(on_host()) << "a device's memory, read by the host: HostValues copies it";
  return absl::Span<float>(static_cast<float*>(data_), size_);
}

absl::Span<int32_t> Tensor::i32() const {
  CHECK(type_ == DataType::kInt32) << "an int32 tensor is needed, not " << DataTypeName(type_);
  CHECK(on_host()) << "a device's memory, read by the host: HostIds copies it";
  return absl::Span<int32_t>(static_cast<int32_t*>(data_), size_);
}

Tensor Tensor::Rows(int64_t begin, int64_t end) const {
  CHECK(!shape_.empty()) << "rows of a tensor without dimensions";
  CHECK(0 <= begin && begin <= end && end <= shape_[0])
      << "rows " << begin << " to " << end << " of " << ShapeToString(shape_);
  Tensor view = *this;
  const int64_t row_size = shape_[0] == 0 ? 0 : size_ / shape_[0];
  view.shape_[0] = end - begin;
  view.size_ = row_size * (end - begin);
  view.data_ = static_cast<char*>(data_) + begin * row_size * SizeOf(type_);
  return view;
}

Tensor Tensor::Reshape(Shape shape) const {
  CHECK(!empty()) << "an empty tensor has no elements to reshape";
  CHECK_EQ(NumElements(shape), size_)
      << ShapeToString(shape_) << " reshaped to " << ShapeToString(shape);
  Tensor view = *this;
  view.shape_ = std::move(shape);
  return view;
}

Tensor Tensor::Adopt(std::shared_ptr<Charge> charge) && {
  Tensor adopted = std::move(*this);
  adopted.charge_ = std::move(charge);
  return adopted;
}

}  // namespace pipelab
