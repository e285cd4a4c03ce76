#include "pipelines/runtime/collective_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/comm/sum.h"
#include "kernels/tensor/host_values.h"
#include "pipelines/ir/trace.h"
#include "pipelines/runtime/describe.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

std::string SpecOf(const Tensor& t) { return SpecToString(TensorSpec{t.type(), t.shape()}); }

// What one local member brings: `part` is of a gather or reduce-scatter.
absl::StatusOr<PartedTensor> Bring(const CollectivePlan& plan, size_t member) {
  PartedTensor parted;
  switch (plan.kind) {
    case CollectiveKind::kGather:
      return plan.parameters[member]->BeginGather();
    case CollectiveKind::kReduceScatter:
      return plan.parameters[member]->BeginScatter();
    case CollectiveKind::kReduce: {
      PIPELAB_ASSIGN_OR_RETURN(parted.whole, plan.parameters[member]->Gradients(plan.parameter));
      return parted;
    }
    case CollectiveKind::kNorm: {
      PIPELAB_ASSIGN_OR_RETURN(parted.whole, plan.modules[member]->BeginNorm(plan.shares[member]));
      return parted;
    }
  }
  return absl::InternalError("unknown collective");
}

// What the local members bring; the first one's part.
absl::StatusOr<Tensor> Collect(const CollectivePlan& plan, std::vector<Tensor>* wholes) {
  Tensor part;
  const size_t members = std::max(plan.parameters.size(), plan.modules.size());
  for (size_t member = 0; member < members; ++member) {
    PIPELAB_ASSIGN_OR_RETURN(PartedTensor parted, Bring(plan, member));
    if (wholes->empty()) part = std::move(parted.part);
    wholes->push_back(std::move(parted.whole));
    const Tensor &first = wholes->front(), &last = wholes->back();
    if (last.type() != first.type() || last.size() != first.size()) {
      return absl::InternalError(
          absl::StrCat("gradients of ", SpecOf(first), " and ", SpecOf(last), " cannot be summed"));
    }
  }
  return part;
}

void SumLocally(const std::vector<Tensor>& tensors) {
  if (tensors.size() < 2) return;
  std::vector<const void*> inputs;
  for (const Tensor& t : tensors) inputs.push_back(t.data());
  void* const sum = tensors[0].data();
  ReduceIn(tensors[0].memory(), MemoryReduction::kSum, inputs, absl::MakeConstSpan(&sum, 1),
           tensors[0].type(), 0, tensors[0].size());
}

}  // namespace

absl::Status BeginCollective(const CollectivePlan& plan, Communicator* communicator,
                             CollectiveState* state) {
  state->wholes.clear();
  PIPELAB_ASSIGN_OR_RETURN(const Tensor part, Collect(plan, &state->wholes));
  const bool gather = plan.kind == CollectiveKind::kGather;
  const bool scatter = plan.kind == CollectiveKind::kReduceScatter;
  if (!gather) SumLocally(state->wholes);
  const Tensor& whole = state->wholes[0];
  state->traffic = RingTraffic(Bytes(whole.bytes()), static_cast<int64_t>(plan.devices.size()),
                               /*all_reduce=*/!gather && !scatter)
                       .value();
  absl::StatusOr<Ticket> ticket =
      gather    ? communicator->BeginAllGather(part, whole, plan.devices)
      : scatter ? communicator->BeginReduceScatter(whole, part, plan.devices)
                : communicator->BeginAllReduce(whole, plan.devices, ReduceOp::kSum);
  if (!ticket.ok()) return ticket.status();
  state->ticket = *ticket;
  return absl::OkStatus();
}

absl::Status EndCollective(const CollectivePlan& plan, CollectiveState* state) {
  const Tensor first = state->wholes[0];
  // Other local copies get the result too; of parts there is one a device.
  for (size_t k = 1; k < state->wholes.size() && plan.kind != CollectiveKind::kReduceScatter; ++k) {
    CopyTensor(first, state->wholes[k]);
  }
  state->wholes.clear();
  if (plan.kind == CollectiveKind::kNorm) {
    for (StageModule* module : plan.modules) PIPELAB_RETURN_IF_ERROR(module->EndNorm(first));
  }
  for (SharedParameters* parameters : plan.parameters) {
    if (plan.kind == CollectiveKind::kGather) PIPELAB_RETURN_IF_ERROR(parameters->EndGather());
    if (plan.kind == CollectiveKind::kReduceScatter) {
      PIPELAB_RETURN_IF_ERROR(parameters->EndScatter());
    }
  }
  return absl::OkStatus();
}

}  // namespace pipelab
