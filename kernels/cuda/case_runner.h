// One kernel case (kernels/cases/kernel_case.h) on a device: within its error bounds of the
// reference, and the same bits at other addresses.
//
//   for (const KernelCase& c : KernelCases(CaseSize::kSmall)) {
//     const CaseResult r = RunOnDevice(c, device);   // r.ok, r.share, r.text
//   }
#ifndef PIPELAB_KERNELS_CUDA_CASE_RUNNER_H_
#define PIPELAB_KERNELS_CUDA_CASE_RUNNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cases/kernel_case.h"
#include "kernels/cuda/device.h"

namespace pipelab {

struct CaseResult {
  bool ok = true;
  double share = 0;  // the largest error as a share of what is allowed
  std::string text;  // what is wrong, where something is
};

CaseResult RunOnDevice(const KernelCase& c, const std::shared_ptr<gpu::Device>& device);

// The bytes of everything that the case writes; tensors start `shift` elements past an
// aligned address.
std::string BitsOnDevice(const KernelCase& c, const std::shared_ptr<gpu::Device>& device,
                         int64_t shift);

// The cases of sizes kSmall and kMedium in every type, or of kSmall alone.
std::vector<KernelCase> CheckedCases(bool small = false);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_CASE_RUNNER_H_
