// Tensors as vectors of doubles, for the length of one call of the reference.
//
//   reference::Gelu(Wide(x), WideResult(y));
#ifndef PIPELAB_KERNELS_REFERENCE_WIDE_H_
#define PIPELAB_KERNELS_REFERENCE_WIDE_H_

#include <vector>

#include "absl/types/span.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

// Empty for an empty tensor.
inline std::vector<double> Wide(const Tensor& x) {
  if (x.empty()) return {};
  return std::vector<double>(x.f32().begin(), x.f32().end());
}

// Starts with the tensor's contents; rounded back when it ends.
class WideResult {
 public:
  explicit WideResult(const Tensor& tensor) : tensor_(tensor), wide_(Wide(tensor)) {}
  ~WideResult() {
    for (size_t i = 0; i < wide_.size(); ++i) tensor_.f32()[i] = static_cast<float>(wide_[i]);
  }
  WideResult(const WideResult&) = delete;
  WideResult& operator=(const WideResult&) = delete;

  operator absl::Span<double>() { return absl::MakeSpan(wide_); }  // NOLINT: a span's stand-in

 private:
  const Tensor& tensor_;
  std::vector<double> wide_;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_REFERENCE_WIDE_H_
