#include "kernels/cuda/device_speed.h"

#include <algorithm>

#include "kernels/tensor/arena.h"
#include "kernels/tensor/host_values.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace gpu {

absl::StatusOr<double> MedianSeconds(Device* device, int runs, const std::function<void()>& work) {
  constexpr int kUncounted = 3;
  std::vector<double> seconds;
  for (int i = 0; i < runs + kUncounted; ++i) {
    PIPELAB_RETURN_IF_ERROR(device->Finish());
    const int64_t before = device->busy_ns();
    work();
    PIPELAB_RETURN_IF_ERROR(device->Finish());
    if (i < kUncounted) continue;
    seconds.push_back(static_cast<double>(device->busy_ns() - before) * 1e-9);
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

MatmulCall ProductOf(const Tensor& a_MK, const Tensor& b_KN, const Tensor& c_MN) {
  MatmulCall call;
  call.type = MatmulCall::Type::kBFloat16;
  call.m = a_MK.dim(0);
  call.n = b_KN.dim(1);
  call.k = a_MK.dim(1);
  call.a = a_MK.data();
  call.b = b_KN.data();
  call.c = c_MN.data();
  return call;
}

absl::StatusOr<double> LargeProductFlops(const std::shared_ptr<Device>& device, int runs) {
  constexpr int64_t kSize = 8192;
  Arena arena(device);
  const auto half = [&] {
    return arena.Zeros(DataType::kBFloat16, {kSize, kSize}, MemoryKind::kWorkspace);
  };
  const Tensor a = half(), b = half(), c = half();
  const std::vector<float> values = EvenNumbers(kSize * kSize);
  for (const Tensor& t : {a, b}) SetHostValues(t, values);
  const MatmulCall call = ProductOf(a, b, c);
  PIPELAB_ASSIGN_OR_RETURN(const double seconds,
                           MedianSeconds(device.get(), runs, [&] { device->Matmul(call); }));
  return 2.0 * kSize * kSize * kSize / seconds;
}

absl::StatusOr<double> CopyBandwidth(const std::shared_ptr<Device>& device, int runs) {
  constexpr int64_t kBytes = int64_t{1} << 30;
  Arena arena(device);
  const Tensor from = arena.Zeros(DataType::kFloat32, {kBytes / 4}, MemoryKind::kWorkspace);
  const Tensor to = arena.Zeros(DataType::kFloat32, {kBytes / 4}, MemoryKind::kWorkspace);
  PIPELAB_ASSIGN_OR_RETURN(const double seconds, MedianSeconds(device.get(), runs, [&] {
                             device->Copy(from.data(), to.data(), kBytes);
                           }));
  return 2.0 * static_cast<double>(kBytes) / seconds;
}

std::vector<float> EvenNumbers(int64_t count) {
  std::vector<float> values(count);
  uint32_t bits = 1;
  for (float& v : values) {
    bits = bits * 1664525u + 1013904223u;
    v = static_cast<float>(bits >> 8) * 0x1.0p-24f - 0.5f;
  }
  return values;
}

}  // namespace gpu
}  // namespace pipelab
