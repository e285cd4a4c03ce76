#include "pipelines/runtime/device_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipelines/runtime/describe.h"
#include "pipelines/runtime/device_planner.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Whether the parts, in row order, are all rows of the input.
bool Covered(const InputPlan& input) {
  if (input.parts.size() == 1) return input.parts[0].whole;
  int64_t covered = 0;
  for (const Part& part : input.parts) {
    if (part.row_begin != covered) return false;
    covered = part.row_end;
  }
  return !input.parts.empty() && covered == input.spec->shape[0];
}

// What begins the collective of the instruction.
OpCode BeginOf(OpCode op) {
  switch (op) {
    case OpCode::kReduceWait:
      return OpCode::kReduce;
    case OpCode::kGatherWait:
    case OpCode::kRelease:
      return OpCode::kGather;
    case OpCode::kNormWait:
      return OpCode::kNorm;
    default:
      return op;
  }
}

}  // namespace

absl::StatusOr<DevicePlan> DevicePlanner::Make() {
  recomputed_ = schedule_.RecomputedStages();
  const std::vector<Instruction>& list = program_.instructions[device_];
  plan_.steps.reserve(list.size());
  // A part must be known before the compute that takes it: senders and receivers first.
  for (const Instruction& i : list) PIPELAB_RETURN_IF_ERROR(FindValues(i));
  for (const Instruction& i : list) PIPELAB_RETURN_IF_ERROR(PlanInstruction(i));
  plan_.specs = std::move(held_).TakeSpecs();
  return std::move(plan_);
}

absl::Status DevicePlanner::Error(absl::string_view place, absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat("device ", device_, ", ", place, ": ", what));
}

// Second pass: one step an instruction.
absl::Status DevicePlanner::PlanInstruction(const Instruction& i) {
  switch (i.op) {
    case OpCode::kCompute:
    case OpCode::kStep:
      return PlanCompute(i);
    case OpCode::kSend:
      return PlanSend(i);
    case OpCode::kReceive:
      plan_.steps.push_back(receive_of_message_[i.arg]);
      posted_.insert(i.arg);
      return absl::OkStatus();
    case OpCode::kWait:
      if (posted_.erase(i.arg) == 0) {
        return Error(Describe(program_, i), "no receive is posted for it");
      }
      plan_.steps.push_back(receive_of_message_[i.arg]);
      return absl::OkStatus();
    case OpCode::kOffload:
    case OpCode::kReload:
      plan_.steps.push_back(static_cast<int32_t>(plan_.host_copies.size()));
      plan_.host_copies.push_back(held_.OfReplica(i.replica, i.action.stage).module);
      if (plan_.host_copies.back() != nullptr) return absl::OkStatus();
      return Error(Describe(program_, i), "the device does not hold the stage");
    case OpCode::kFill:
    case OpCode::kHostWait:
    case OpCode::kSynchronise:
      plan_.steps.push_back(-1);
      return absl::OkStatus();
    case OpCode::kReduce:
    case OpCode::kReduceWait:
    case OpCode::kGather:
    case OpCode::kGatherWait:
    case OpCode::kNorm:
    case OpCode::kNormWait:
    case OpCode::kRelease:
      return PlanCollectives(i);
  }
  return absl::InternalError("unknown operation");
}

absl::Status DevicePlanner::PlanCompute(const Instruction& i) {
  const Action& a = i.action;
  ComputePlan compute;
  const int replica =
      a.kind == ActionKind::kStep ? i.replica : schedule_.ReplicaOf(a.stage, a.micro_batch);
  compute.module = held_.OfReplica(replica, a.stage).module;
  compute.drop = a.kind == ActionKind::kForward && recomputed_[a.stage];
  if (compute.module == nullptr) {
    return Error(Describe(program_, i), "the device does not hold the stage");
  }
  if (Consumes(a)) {
    const bool gradient = a.kind != ActionKind::kForward;
    for (int edge : EdgesIn(a)) {
      const PassMap& passes = flows_.Along(edge, gradient);
      const bool takes = !passes.Sources(a.micro_batch).empty();
      const int first =
          takes ? passes.FirstReader(passes.SamplePass(a.micro_batch)) : a.micro_batch;
      const Value value(edge, gradient, first, a.slice);
      InputPlan input;
      input.spec = ConsumerSpec(value);
      input.again = !passes.IsLastRead(a.micro_batch);
      input.parts = inputs_[value];
      std::sort(input.parts.begin(), input.parts.end(),
                [](const Part& x, const Part& y) { return x.row_begin < y.row_begin; });
      if (!takes) {
        input.is_zero = passes.reads().late();
      } else if (!Covered(input)) {
        return Error(Describe(program_, i),
                     absl::StrCat("its input on edge ", edge,
                                  " is neither made here nor received, or only in part"));
      }
      compute.inputs.push_back(std::move(input));
    }
    for (int edge : EdgesOut(a)) {
      const Value value(edge, gradient, a.micro_batch, a.slice);
      OutputPlan output;
      output.spec = ProducerSpec(value);
      output.taken = !flows_.Along(edge, gradient).Readers(a.micro_batch).empty();
      const auto source = sources_.find(value);
      if (source != sources_.end()) {
        output.send_buffer = source->second.send_buffer;
        output.local = source->second.local;
      }
      compute.outputs.push_back(std::move(output));
    }
  }
  plan_.steps.push_back(static_cast<int32_t>(plan_.computes.size()));
  plan_.computes.push_back(std::move(compute));
  return absl::OkStatus();
}

absl::Status DevicePlanner::PlanSend(const Instruction& i) {
  const Message& m = program_.messages[i.arg];
  if (m.is_hop()) {
    SendPlan hop;
    hop.peer = m.to_device;
    hop.hop = held_.OfReplica(i.replica, m.hop_of_stage).module;
    hop.gradient = m.gradient;
    if (hop.hop == nullptr || m.from_device != device_) {
      return Error(Describe(program_, i), "the hop is from another device");
    }
    plan_.steps.push_back(static_cast<int32_t>(plan_.sends.size()));
    plan_.sends.push_back(hop);
    return absl::OkStatus();
  }
  const auto [value, rows] = EndOf(m, /*consumer=*/false);
  const HeldStage& from = ProducerStage(value);
  if (from.module == nullptr || m.from_device != device_) {
    return Error(Describe(program_, i), "the message is from another device");
  }
  SendPlan send;
  send.peer = m.to_device;
  PIPELAB_ASSIGN_OR_RETURN(send.part,
                           Rows(from, *ProducerSpec(value), rows, Describe(program_, i)));
  Source& source = sources_[value];
  send.part.buffer = source.send_buffer;
  send.last = --source.sends_left == 0;
  plan_.steps.push_back(static_cast<int32_t>(plan_.sends.size()));
  plan_.sends.push_back(send);
  return absl::OkStatus();
}

// A wait has the plan of what it waits for; a release that of its gather.
absl::Status DevicePlanner::PlanCollectives(const Instruction& i) {
  if (i.op == OpCode::kRelease && schedule_.weights_travel) {  // of what came by a hop
    CollectivePlan plan;
    plan.modules = {held_.OfReplica(i.replica, i.action.stage).module};
    if (plan.modules[0] == nullptr) {
      return Error(Describe(program_, i), "the device does not hold the stage");
    }
    plan_.steps.push_back(static_cast<int32_t>(plan_.collectives.size()));
    plan_.collectives.push_back(std::move(plan));
    return absl::OkStatus();
  }
  const std::pair<OpCode, int32_t> key(BeginOf(i.op), i.arg);
  const bool begins = i.op == key.first;
  const auto at = collective_.find(key);
  if (begins == (at != collective_.end())) {
    return Error(absl::StrCat(OpCodeName(i.op), " ", i.arg),
                 begins ? "it has begun already" : "it has not begun");
  }
  if (begins) {
    PIPELAB_ASSIGN_OR_RETURN(CollectivePlan plan, PlanCollective(program_, device_, held_, i));
    collective_[key] = static_cast<int32_t>(plan_.collectives.size());
    plan_.collectives.push_back(std::move(plan));
  }
  plan_.steps.push_back(collective_[key]);
  return absl::OkStatus();
}

absl::StatusOr<DevicePlan> MakeDevicePlan(const Program& program, int device,
                                          const std::vector<std::vector<StageModule*>>& modules) {
  PIPELAB_ASSIGN_OR_RETURN(HeldStages held, HeldStages::Make(program.schedule, device, modules));
  return DevicePlanner(program, device, std::move(held)).Make();
}

void MapToRanks(int tensor_parallel, int member, DevicePlan* plan) {
  const auto map = [&](int* device) { *device = *device * tensor_parallel + member; };
  for (SendPlan& send : plan->sends) map(&send.peer);
  for (ReceivePlan& receive : plan->receives) map(&receive.peer);
  for (CollectivePlan& collective : plan->collectives) {
    for (int& device : collective.devices) map(&device);
    for (CollectivePlan& experts : collective.experts) {
      for (int& device : experts.devices) map(&device);
    }
  }
}

}  // namespace pipelab
