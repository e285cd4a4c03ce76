// Sums and maxima of several tensors, with kernels/comm/sum.cc's roundings.
#include <cstdint>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.h"

namespace pipelab {
namespace gpu {
namespace {

struct Float32 {
  using Stored = float;
  using Sum = float;
  static PIPELAB_DEVICE Sum Load(Stored x) { return x; }
  static PIPELAB_DEVICE Stored Store(Sum x) { return x; }
  static PIPELAB_DEVICE bool Above(Sum a, Sum b) { return !(a <= b); }
};
struct Int32 {
  using Stored = uint32_t;  // overflow wraps
  using Sum = uint32_t;
  static PIPELAB_DEVICE Sum Load(Stored x) { return x; }
  static PIPELAB_DEVICE Stored Store(Sum x) { return x; }
  static PIPELAB_DEVICE bool Above(Sum a, Sum b) {
    return static_cast<int32_t>(a) > static_cast<int32_t>(b);
  }
};
struct Half {
  using Stored = BFloat16;
  using Sum = float;
  static PIPELAB_DEVICE Sum Load(Stored x) { return x; }
  static PIPELAB_DEVICE Stored Store(Sum x) { return Stored(x); }
  static PIPELAB_DEVICE bool Above(Sum a, Sum b) { return !(a <= b); }
};

// An element of all inputs is read before any output of it is written: outputs may be inputs.
template <class Type, bool kLargest>
void ReduceTyped(Queue& queue, const Copies& copies, int64_t begin, int64_t count) {
  const Copies all = copies;
  ForEach(queue, kLargest ? "LargestOfCopies" : "SumOfCopies", count,
          [=] PIPELAB_DEVICE(int64_t i) {
            using Stored = typename Type::Stored;
            typename Type::Sum sum = Type::Load(static_cast<const Stored*>(all.in[0])[begin + i]);
            for (int k = 1; k < all.inputs; ++k) {
              const auto x = Type::Load(static_cast<const Stored*>(all.in[k])[begin + i]);
              if (!kLargest) {
                sum += x;
              } else if (sum == sum && Type::Above(x, sum)) {  // nothing is above a NaN
                sum = x;
              }
            }
            const Stored result = Type::Store(sum);
            for (int k = 0; k < all.outputs; ++k) {
              static_cast<Stored*>(all.out[k])[begin + i] = result;
            }
          });
}

template <bool kLargest>
void Reduce(Queue& queue, const Copies& copies, Element element, int64_t begin, int64_t count) {
  switch (element) {
    case Element::kFloat32:
      return ReduceTyped<Float32, kLargest>(queue, copies, begin, count);
    case Element::kInt32:
      return ReduceTyped<Int32, kLargest>(queue, copies, begin, count);
    case Element::kBFloat16:
      return ReduceTyped<Half, kLargest>(queue, copies, begin, count);
  }
}

}  // namespace

void SumOfCopies(Queue& queue, const Copies& copies, Element element, int64_t begin,
                 int64_t count) {
  Reduce<false>(queue, copies, element, begin, count);
}

void LargestOfCopies(Queue& queue, const Copies& copies, Element element, int64_t begin,
                     int64_t count) {
  Reduce<true>(queue, copies, element, begin, count);
}

}  // namespace gpu
}  // namespace pipelab
