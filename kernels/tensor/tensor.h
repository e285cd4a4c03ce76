// A dense row-major tensor: shape, type, shared memory, and the charge of the arena that pays for
// it.
//
//   Tensor x = arena.Allocate(DataType::kFloat32, {4, 128}, MemoryKind::kActivation);
//   absl::Span<float> values = x.f32();
//   Tensor half = x.Rows(0, 2);            // a view: same memory, same charge
//
// Copying a Tensor shares it. Shapes in names: x_MK is M rows of K.
#ifndef PIPELAB_KERNELS_TENSOR_TENSOR_H_
#define PIPELAB_KERNELS_TENSOR_TENSOR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace pipelab {

enum class DataType : uint8_t { kFloat32, kInt32, kBFloat16 };
class Memory;  // kernels/tensor/memory.h

int64_t SizeOf(DataType type);  // bytes of an element
const char* DataTypeName(DataType type);

using Shape = absl::InlinedVector<int64_t, 4>;
int64_t NumElements(const Shape& shape);
std::string ShapeToString(const Shape& shape);  // "[4, 128]"

class Charge;   // kernels/tensor/arena.h
class Storage;  // a block of memory, freed with its last user

class Tensor {
 public:
  Tensor();  // empty: no memory, not even zero elements
  Tensor(DataType type, Shape shape, std::shared_ptr<Storage> storage,
         std::shared_ptr<Charge> charge);
  ~Tensor();
  Tensor(const Tensor&);
  Tensor& operator=(const Tensor&);
  Tensor(Tensor&& other) noexcept;  // leaves `other` empty
  Tensor& operator=(Tensor&& other) noexcept;

  bool empty() const { return storage_ == nullptr; }
  DataType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int64_t dim(int i) const { return shape_[i]; }
  int64_t size() const { return size_; }  // elements
  int64_t bytes() const { return size_ * SizeOf(type_); }

  // Where the elements lie: the host may not touch those of a device (host_values.h).
  bool on_host() const { return memory() == nullptr; }
  Memory* memory() const;  // null: the host's
  void* data() const { return data_; }
  absl::Span<float> f32() const;    // CHECKs the type, and that it is on the host
  absl::Span<int32_t> i32() const;  // the same

  // Rows [begin, end) of the first dimension: a view.
  Tensor Rows(int64_t begin, int64_t end) const;
  // The same elements under another shape.
  Tensor Reshape(Shape shape) const;
  // The same memory, paid by `charge` from now on (hand-over between devices). This tensor becomes
  // empty.
  Tensor Adopt(std::shared_ptr<Charge> charge) &&;
  const std::shared_ptr<Storage>& storage() const { return storage_; }

 private:
  DataType type_ = DataType::kFloat32;
  Shape shape_;
  int64_t size_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<Storage> storage_;
  std::shared_ptr<Charge> charge_;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_TENSOR_TENSOR_H_
