#include "kernels/comm/sum.h"

#include <algorithm>
#include <cstring>

#include "kernels/tensor/bfloat16.h"

namespace pipelab {
namespace {

// Elements that are summed at a time: the partial sums stay in the first-level cache, and all
// inputs of a block are read before any output of it is written, so that outputs may be inputs.
constexpr int64_t kBlock = 1024;

// How a stored element becomes an accumulated one and back.
struct Float32 {
  using Stored = float;
  using Sum = float;
  static Sum Load(Stored x) { return x; }
  static Stored Store(Sum x) { return x; }
  static bool Above(Sum a, Sum b) { return !(a <= b); }
};
struct Int32 {
  using Stored = uint32_t;  // unsigned: overflow wraps instead of being undefined
  using Sum = uint32_t;
  static Sum Load(Stored x) { return x; }
  static Stored Store(Sum x) { return x; }
  static bool Above(Sum a, Sum b) { return static_cast<int32_t>(a) > static_cast<int32_t>(b); }
};
struct Half {
  using Stored = BFloat16;
  using Sum = float;
  static Sum Load(Stored x) { return x; }
  static Stored Store(Sum x) { return Stored(x); }
  static bool Above(Sum a, Sum b) { return !(a <= b); }
};

struct Add {
  template <typename Type>
  static void Take(typename Type::Sum x, typename Type::Sum* result) {
    *result += x;
  }
};
struct Max {  // a NaN is above everything, and nothing is above it
  template <typename Type>
  static void Take(typename Type::Sum x, typename Type::Sum* result) {
    if (*result == *result && Type::Above(x, *result)) *result = x;
  }
};

template <typename Type, typename Op>
void Reduce(absl::Span<const void* const> inputs, absl::Span<void* const> outputs, int64_t begin,
            int64_t count) {
  using Stored = typename Type::Stored;
  typename Type::Sum sums[kBlock];
  Stored result[kBlock];
  for (int64_t at = begin; at < begin + count; at += kBlock) {
    const int64_t n = std::min(kBlock, begin + count - at);
    for (size_t k = 0; k < inputs.size(); ++k) {
      const Stored* in = static_cast<const Stored*>(inputs[k]) + at;
      if (k == 0) {
        for (int64_t i = 0; i < n; ++i) sums[i] = Type::Load(in[i]);
      } else {
        for (int64_t i = 0; i < n; ++i) Op::template Take<Type>(Type::Load(in[i]), &sums[i]);
      }
    }
    for (int64_t i = 0; i < n; ++i) result[i] = Type::Store(sums[i]);
    for (void* out : outputs)
      std::memcpy(static_cast<Stored*>(out) + at, result, n * sizeof(Stored));
  }
}

template <typename Op>
void ReduceTyped(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                 DataType type, int64_t begin, int64_t count) {
  switch (type) {
    case DataType::kFloat32:
      return Reduce<Float32, Op>(inputs, outputs, begin, count);
    case DataType::kInt32:
      return Reduce<Int32, Op>(inputs, outputs, begin, count);
    case DataType::kBFloat16:
      return Reduce<Half, Op>(inputs, outputs, begin, count);
  }
}

}  // namespace

void SumInOrder(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                DataType type, int64_t begin, int64_t count) {
  ReduceTyped<Add>(inputs, outputs, type, begin, count);
}

void Largest(absl::Span<const void* const> inputs, absl::Span<void* const> outputs, DataType type,
             int64_t begin, int64_t count) {
  ReduceTyped<Max>(inputs, outputs, type, begin, count);
}

void ReduceIn(Memory* memory, MemoryReduction reduction, absl::Span<const void* const> inputs,
              absl::Span<void* const> outputs, DataType type, int64_t begin, int64_t count) {
  if (memory != nullptr) return memory->Reduce(reduction, inputs, outputs, type, begin, count);
  const auto reduce = reduction == MemoryReduction::kMax ? &Largest : &SumInOrder;
  reduce(inputs, outputs, type, begin, count);
}

}  // namespace pipelab
