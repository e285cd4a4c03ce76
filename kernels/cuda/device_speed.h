// What a device reaches at most, by its own clock: the ceilings that speeds are shares of.
//
//   PIPELAB_ASSIGN_OR_RETURN(const double seconds,
//                            MedianSeconds(device.get(), 10, [&] { device->Matmul(call); }));
//   PIPELAB_ASSIGN_OR_RETURN(const double peak, LargeProductFlops(device, 10));   // a second
//
// Medians of so many runs, after three that are not counted: with graphs, those of the third are
// replayed.
#ifndef PIPELAB_KERNELS_CUDA_DEVICE_SPEED_H_
#define PIPELAB_KERNELS_CUDA_DEVICE_SPEED_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {
namespace gpu {

// Seconds of what `work` queues.
absl::StatusOr<double> MedianSeconds(Device* device, int runs, const std::function<void()>& work);

// A product of bfloat16 matrices, c = a b.
MatmulCall ProductOf(const Tensor& a_MK, const Tensor& b_KN, const Tensor& c_MN);

// The rate of a product of 8192^3 in bfloat16, of numbers that are not zeros: those draw less
// power.
absl::StatusOr<double> LargeProductFlops(const std::shared_ptr<Device>& device, int runs);

// The bandwidth of a copy of 1 GiB in the device's memory, read and written bytes counted.
absl::StatusOr<double> CopyBandwidth(const std::shared_ptr<Device>& device, int runs);

// In [-0.5, 0.5), the same each time.
std::vector<float> EvenNumbers(int64_t count);

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_DEVICE_SPEED_H_
