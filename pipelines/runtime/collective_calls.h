// One device's part in a reduction, a gather or the global norm: between its modules and the
// communicator.
//
//   CollectiveState state;
//   PIPELAB_RETURN_IF_ERROR(BeginCollective(plan, communicator, &state));
//   ... other instructions ...
//   PIPELAB_RETURN_IF_ERROR(communicator->Wait(state.ticket, limit).status());
//   PIPELAB_RETURN_IF_ERROR(EndCollective(plan, &state));
//
// Sums: local copies first, in member order, then the devices in ascending order: one order for
// everybody, and the same for whole gradients and parts.
#ifndef PIPELAB_PIPELINES_RUNTIME_COLLECTIVE_CALLS_H_
#define PIPELAB_PIPELINES_RUNTIME_COLLECTIVE_CALLS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "kernels/comm/communicator.h"
#include "kernels/tensor/tensor.h"
#include "pipelines/runtime/collective_plan.h"

namespace pipelab {

struct CollectiveState {
  Ticket ticket = 0;
  std::vector<Tensor> wholes;            // of the local members, in member order
  int64_t traffic = 0;                   // bytes that this device sends, by a ring
  std::vector<CollectiveState> experts;  // of CollectivePlan::experts
};

absl::Status BeginCollective(const CollectivePlan& plan, Communicator* communicator,
                             CollectiveState* state);
// The ticket has been waited for.
absl::Status EndCollective(const CollectivePlan& plan, CollectiveState* state);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_COLLECTIVE_CALLS_H_
