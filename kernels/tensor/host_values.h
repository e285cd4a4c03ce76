// A tensor's elements for the host, wherever they lie.
//
//   std::vector<float> values = HostValues(x);
//   SetHostValues(x, values);
//   FillOnHost<float>(x, [](absl::Span<float> all) { ... });   // writes every element
//
// Reads and writes of a device's memory wait for what is queued there; on the host they are plain
// copies, and FillOnHost writes in place. Numbers of bfloat16 are floats for the host: widened when
// read, rounded when written.
#ifndef PIPELAB_KERNELS_TENSOR_HOST_VALUES_H_
#define PIPELAB_KERNELS_TENSOR_HOST_VALUES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

std::vector<float> HostValues(const Tensor& x);
std::vector<int32_t> HostIds(const Tensor& x);
std::vector<uint16_t> HostHalves(const Tensor& x);  // bfloat16, as it is stored

// As many as the tensor has: CHECKed.
void SetHostValues(const Tensor& x, absl::Span<const float> values);
void SetHostIds(const Tensor& x, absl::Span<const int32_t> values);
void SetHostHalves(const Tensor& x, absl::Span<const uint16_t> values);

// Between tensors of one device, or of the host, of equal bytes: CHECKed.
void CopyTensor(const Tensor& from, const Tensor& to);

inline void SetOnDevice(const Tensor& x, absl::Span<const float> v) { SetHostValues(x, v); }
inline void SetOnDevice(const Tensor& x, absl::Span<const int32_t> v) { SetHostIds(x, v); }

template <class T, class Fill>
void FillOnHost(const Tensor& x, const Fill& fill) {
  if (x.on_host() && SizeOf(x.type()) == static_cast<int64_t>(sizeof(T))) {
    fill(absl::Span<T>(static_cast<T*>(x.data()), x.size()));
    return;
  }
  std::vector<T> values(x.size());
  fill(absl::MakeSpan(values));
  SetOnDevice(x, absl::Span<const T>(values));
}

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_TENSOR_HOST_VALUES_H_
