// The reference's groups of kernels: functions.h behind each group's interface.
#ifndef PIPELAB_KERNELS_REFERENCE_GROUPS_H_
#define PIPELAB_KERNELS_REFERENCE_GROUPS_H_

#include <memory>

#include "kernels/backend.h"

namespace pipelab {
namespace reference {

std::unique_ptr<LossKernels> MakeLossKernels();
std::unique_ptr<OptimizerKernels> MakeOptimizerKernels();

}  // namespace reference
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_REFERENCE_GROUPS_H_
