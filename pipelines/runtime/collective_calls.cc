#include "pipelines/runtime/collective_calls.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/comm/sum.h"
#include "pipelines/ir/trace.h"
#include "pipelines/runtime/place.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

std::string SpecOf(const Tensor& t) { return SpecToString(TensorSpec{t.type(), t.shape()}); }

// What the local members bring; the first one's part.
absl::StatusOr<Tensor> Collect(const CollectivePlan& plan, std::vector<Tensor>* wholes) {
  Tensor part;
  for (StageModule* module : plan.modules) {
    if (plan.gather || plan.scatter) {
      PIPELAB_ASSIGN_OR_RETURN(PartedTensor parted,
                               plan.gather ? module->BeginGather() : module->BeginScatter());
      if (wholes->empty()) part = std::move(parted.part);
      wholes->push_back(std::move(parted.whole));
    } else {
      PIPELAB_ASSIGN_OR_RETURN(Tensor gradient, module->Gradients(plan.parameter));
      wholes->push_back(std::move(gradient));
    }
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
  SumInOrder(inputs, absl::MakeConstSpan(&sum, 1), tensors[0].type(), 0, tensors[0].size());
}

}  // namespace

absl::Status BeginCollective(const CollectivePlan& plan, Communicator* communicator,
                             CollectiveState* state) {
  state->wholes.clear();
  PIPELAB_ASSIGN_OR_RETURN(const Tensor part, Collect(plan, &state->wholes));
  if (!plan.gather) SumLocally(state->wholes);
  const Tensor& whole = state->wholes[0];
  const bool all_reduce = !plan.gather && !plan.scatter;
  state->traffic =
      RingTraffic(Bytes(whole.bytes()), static_cast<int64_t>(plan.devices.size()), all_reduce)
          .value();
  absl::StatusOr<Ticket> ticket =
      plan.gather    ? communicator->BeginAllGather(part, whole, plan.devices)
      : plan.scatter ? communicator->BeginReduceScatter(whole, part, plan.devices)
                     : communicator->BeginAllReduce(whole, plan.devices);
  if (!ticket.ok()) return ticket.status();
  state->ticket = *ticket;
  return absl::OkStatus();
}

absl::Status EndCollective(const CollectivePlan& plan, Communicator* communicator,
                           absl::Duration limit, CollectiveState* state) {
  PIPELAB_RETURN_IF_ERROR(communicator->Wait(state->ticket, limit).status());
  // Other local copies get the result too; of parts there is one a device.
  const Tensor& first = state->wholes[0];
  for (size_t k = 1; k < state->wholes.size() && !plan.scatter; ++k) {
    std::memcpy(state->wholes[k].data(), first.data(), first.bytes());
  }
  state->wholes.clear();
  for (StageModule* module : plan.modules) {
    if (plan.gather) PIPELAB_RETURN_IF_ERROR(module->EndGather());
    if (plan.scatter) PIPELAB_RETURN_IF_ERROR(module->EndScatter());
  }
  return absl::OkStatus();
}

}  // namespace pipelab
