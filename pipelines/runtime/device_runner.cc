#include "pipelines/runtime/device_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/tensor/host_values.h"
#include "pipelines/fill/fill_runner.h"
#include "pipelines/runtime/describe.h"
#include "tools/base/clocks.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

bool FitsSpec(const Tensor& tensor, const TensorSpec& spec) {
  return !tensor.empty() && tensor.type() == spec.type && tensor.shape() == spec.shape;
}

std::string TensorToString(const Tensor& t) {
  return t.empty() ? "nothing" : SpecToString(TensorSpec{t.type(), t.shape()});
}

}  // namespace

DeviceRunner::DeviceRunner(const Program* program, int device, DevicePlan plan, Arena* arena,
                           Communicator* communicator, CommunicatorPeers* peers, FillRunner* fill,
                           const ExecutorOptions& options)
    : program_(program),
      name_(communicator->rank() == device
                ? absl::StrCat("device ", device)
                : absl::StrCat("device ", device, " (rank ", communicator->rank(), ")")),
      instructions_(program->instructions[device]),
      plan_(std::move(plan)),
      arena_(arena),
      communicator_(communicator),
      peers_(peers),
      fill_(fill),
      trace_(options.trace),
      tensor_parallel_(options.tensor_parallel),
      divided_messages_(options.divided_messages),
      first_come_(options.first_come),
      recorder_(instructions_),
      host_copier_(arena, options.host_bandwidth),
      buffers_(plan_.num_buffers),
      receive_tickets_(plan_.receives.size()),
      collectives_(plan_.collectives.size()),
      position_(instructions_.size()) {}

absl::Status DeviceRunner::Run(DeviceStep* step) {
  *step = DeviceStep();
  bytes_sent_ = messages_sent_ = collective_bytes_ = 0;
  const Bytes tensor_traffic = TensorTraffic();
  host_copier_.Reset();
  arena_->ResetPeaks();
  if (fill_ != nullptr) fill_->BeginStep(instructions_, program_->fills);
  step->begin_ns = WallNs();
  if (trace_) recorder_.Start();
  done_.assign(first_come_ > 0 ? instructions_.size() : 0, 0);
  at_ = overtaking_ = overtakes_to_ = 0;
  for (size_t count = 0; count < instructions_.size(); ++count) {
    const size_t n = first_come_ > 0 ? Next() : count;
    const Instruction& i = instructions_[n];
    const int32_t index = plan_.steps[n];
    position_.store(static_cast<int64_t>(n), std::memory_order_relaxed);
    if (!trace_) {
      PIPELAB_RETURN_IF_ERROR(Execute(i, index));
      continue;
    }
    const bool computes = i.op == OpCode::kCompute || i.op == OpCode::kStep;
    const StageModule* module = computes ? plan_.computes[index].module : nullptr;
    const int64_t library = computes ? module->library_ns() : 0;
    recorder_.Before(n);
    PIPELAB_RETURN_IF_ERROR(Execute(i, index));
    recorder_.After(n, computes ? module->library_ns() - library : 0);
  }
  PIPELAB_RETURN_IF_ERROR(FinishSends());
  if (trace_) recorder_.Take(&step->trace);
  step->end_ns = WallNs();
  position_.store(static_cast<int64_t>(instructions_.size()), std::memory_order_relaxed);
  step->trace.peak_activation = arena_->peak_transient();
  step->trace.peak_state = arena_->peak_state();
  step->trace.bytes_sent = Bytes(bytes_sent_);
  step->trace.messages_sent = messages_sent_;
  step->trace.collective_bytes = Bytes(collective_bytes_);
  step->trace.tensor_bytes = TensorTraffic() - tensor_traffic;
  step->trace.peak_host = host_copier_.peak_host();
  step->trace.host_bytes = host_copier_.bytes();
  if (trace_) step->trace.host_copies = HostCopies();
  return absl::OkStatus();
}

size_t DeviceRunner::Next() {
  if (overtaking_ < overtakes_to_) return overtaking_++;
  while (done_[at_] != 0) ++at_;
  size_t next = instructions_.size();
  if (instructions_[at_].op == OpCode::kWait) {
    // Nobody wakes a thread for whichever message comes first, so it looks from time to time.
    constexpr absl::Duration kLook = absl::Microseconds(20);
    const auto came = [&] { return communicator_->Arrived(receive_tickets_[plan_.steps[at_]]); };
    waits_.fetch_add(1, std::memory_order_relaxed);
    while (!came() && (next = Overtaking()) == instructions_.size()) absl::SleepFor(kLook);
    waits_.fetch_add(1, std::memory_order_relaxed);
  }
  if (next == instructions_.size()) {
    done_[at_] = 1;
    return at_;
  }
  const auto begins = [&](size_t n) {
    return instructions_[n].op == OpCode::kWait || instructions_[n].op == OpCode::kReceive;
  };
  overtaking_ = overtakes_to_ = next + 1;
  if (instructions_[next].op == OpCode::kWait) {
    while (overtakes_to_ < instructions_.size() && !begins(overtakes_to_)) ++overtakes_to_;
  }
  std::fill(done_.begin() + static_cast<int64_t>(next),
            done_.begin() + static_cast<int64_t>(overtakes_to_), 1);
  return next;
}

size_t DeviceRunner::Overtaking() const {
  std::vector<int> peers;  // who have something earlier to bring
  for (size_t n = at_; n < instructions_.size(); ++n) {
    const OpCode op = instructions_[n].op;
    if (done_[n] != 0 || (op != OpCode::kWait && op != OpCode::kReceive)) continue;
    if (op == OpCode::kReceive) return n;
    if (static_cast<int>(peers.size()) == first_come_) break;
    const int peer = plan_.receives[plan_.steps[n]].peer;
    const bool first = std::find(peers.begin(), peers.end(), peer) == peers.end();
    if (first && communicator_->Arrived(receive_tickets_[plan_.steps[n]])) return n;
    peers.push_back(peer);
  }
  return instructions_.size();
}

absl::Status DeviceRunner::Execute(const Instruction& i, int32_t index) {
  absl::Status status;
  switch (i.op) {
    case OpCode::kCompute:
    case OpCode::kStep:
      status = Compute(i, plan_.computes[index]);
      break;
    case OpCode::kSend:
      status = Send(i, plan_.sends[index]);
      break;
    case OpCode::kReceive:
      status = Receive(i, index);
      break;
    case OpCode::kWait:
      status = Wait(index);
      break;
    case OpCode::kFill:
      RunFill(i);
      break;
    case OpCode::kOffload:
    case OpCode::kReload:
    case OpCode::kHostWait:
      status = MoveToHost(i, index);
      break;
    case OpCode::kSynchronise:
      status = FinishSends();
      break;
    case OpCode::kReduce:
    case OpCode::kReduceWait:
    case OpCode::kGather:
    case OpCode::kGatherWait:
    case OpCode::kNorm:
    case OpCode::kNormWait:
    case OpCode::kRelease:
      status = RunCollective(i.op, index);
      break;
  }
  return status.ok() ? status : AtPlace(i, std::move(status));
}

absl::Status DeviceRunner::AtPlace(const Instruction& i, absl::Status status) const {
  if (IsFollowUp(status)) return status;
  return absl::Status(status.code(),
                      absl::StrCat(name_, ", ", Describe(*program_, i), ": ", status.message()));
}

absl::Status DeviceRunner::Compute(const Instruction& i, const ComputePlan& compute) {
  const Action& a = i.action;
  StageModule& module = *compute.module;
  switch (a.kind) {
    case ActionKind::kForward: {
      std::vector<Tensor> inputs;
      PIPELAB_RETURN_IF_ERROR(Gather(compute, &inputs));
      PIPELAB_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                               module.Forward(a, std::move(inputs), compute.drop));
      return Deliver(compute, std::move(outputs), /*forward=*/true);
    }
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput: {
      std::vector<Tensor> gradients;
      PIPELAB_RETURN_IF_ERROR(Gather(compute, &gradients));
      PIPELAB_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                               module.Backward(a, std::move(gradients)));
      return Deliver(compute, std::move(outputs), /*forward=*/false);
    }
    case ActionKind::kBackwardWeight:
      return module.BackwardWeight(a);
    case ActionKind::kRecompute:
      return module.Recompute(a);
    case ActionKind::kStep:
      return module.Step(a);
    case ActionKind::kOffload:
    case ActionKind::kReload:
      break;
  }
  return absl::InternalError("unknown action");
}

absl::Status DeviceRunner::Gather(const ComputePlan& compute, std::vector<Tensor>* inputs) {
  inputs->reserve(compute.inputs.size());
  for (const InputPlan& input : compute.inputs) {
    for (const Part& part : input.parts) {
      if (buffers_[part.buffer].empty()) {
        return absl::InternalError(absl::StrCat("input ", inputs->size(), " has not arrived"));
      }
    }
    if (input.parts.empty()) {  // a gradient that there is not, or not yet
      inputs->push_back(input.is_zero ? arena_->Zeros(input.spec->type, input.spec->shape,
                                                      MemoryKind::kActivation)
                                      : Tensor());
    } else if (input.parts.size() == 1) {
      Tensor& buffer = buffers_[input.parts[0].buffer];
      inputs->push_back(input.again ? Copy(buffer) : std::move(buffer));
    } else {
      inputs->push_back(Assemble(input));
    }
  }
  return absl::OkStatus();
}

// One tensor of the rows that came from several devices. The parts are paid for until it is there.
Tensor DeviceRunner::Assemble(const InputPlan& input) {
  Tensor whole = arena_->Allocate(input.spec->type, input.spec->shape, MemoryKind::kActivation);
  for (const Part& part : input.parts) {
    const Tensor& rows = buffers_[part.buffer];
    CopyTensor(rows, whole.Rows(part.row_begin, part.row_end));
  }
  for (const Part& part : input.parts) buffers_[part.buffer] = Tensor();
  return whole;
}

Tensor DeviceRunner::Copy(const Tensor& rows) {
  Tensor copy = arena_->Allocate(rows.type(), rows.shape(), MemoryKind::kActivation);
  CopyTensor(rows, copy);
  return copy;
}

absl::Status DeviceRunner::Deliver(const ComputePlan& compute, std::vector<Tensor> outputs,
                                   bool forward) {
  const char* edges = forward ? "out-edge" : "in-edge";
  if (outputs.size() != compute.outputs.size()) {
    return absl::InternalError(absl::StrCat("the module returned ", outputs.size(), " tensors for ",
                                            compute.outputs.size(), " ", edges, "s"));
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    const OutputPlan& plan = compute.outputs[k];
    if (!plan.taken) continue;
    if (!FitsSpec(outputs[k], *plan.spec)) {
      return absl::InternalError(absl::StrCat("the module returned ", TensorToString(outputs[k]),
                                              " for ", edges, " ", k, ", not ",
                                              SpecToString(*plan.spec)));
    }
    // A part that stays is a copy: a view would keep all rows alive as long as itself.
    for (const Part& part : plan.local) {
      buffers_[part.buffer] =
          part.whole ? outputs[k] : Copy(outputs[k].Rows(part.row_begin, part.row_end));
    }
    Tensor output = std::move(outputs[k]);
    if (plan.send_buffer >= 0) buffers_[plan.send_buffer] = std::move(output);
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::Send(const Instruction& i, const SendPlan& send) {
  Tensor rows;
  if (send.hop != nullptr) {
    PIPELAB_ASSIGN_OR_RETURN(rows, send.hop->SendHop(send.gradient));
  } else {
    Tensor& buffer = buffers_[send.part.buffer];
    if (buffer.empty()) return absl::InternalError("there is nothing to send yet");
    rows = send.part.whole ? buffer : buffer.Rows(send.part.row_begin, send.part.row_end);
    if (send.last) buffer = Tensor();
  }
  if (const int64_t parts = send.hop != nullptr ? 1 : PartsOf(rows.bytes()); parts > 1) {
    rows = rows.Reshape({parts, rows.size() / parts}).Rows(peers_->member(), peers_->member() + 1);
  }
  bytes_sent_ += rows.bytes();
  ++messages_sent_;
  PIPELAB_ASSIGN_OR_RETURN(Ticket ticket, communicator_->Send(std::move(rows), send.peer, i.arg));
  send_tickets_.emplace_back(ticket, static_cast<int32_t>(&i - instructions_.data()));
  return absl::OkStatus();
}

absl::Status DeviceRunner::Receive(const Instruction& i, int32_t index) {
  const ReceivePlan& receive = plan_.receives[index];
  const int64_t parts = receive.hop != nullptr ? 1 : PartsOf(receive.bytes);
  const MemoryKind kind = receive.hop == nullptr ? MemoryKind::kActivation
                          : receive.gradient     ? MemoryKind::kGradient
                                                 : MemoryKind::kParameter;
  TensorSpec spec = receive.spec;
  if (parts > 1) spec.shape = {1, NumElements(spec.shape) / parts};
  PIPELAB_ASSIGN_OR_RETURN(
      receive_tickets_[index],
      communicator_->Receive(std::move(spec), receive.peer, i.arg,
                             arena_->Reserve(Bytes(receive.bytes / parts), kind)));
  return absl::OkStatus();
}

absl::Status DeviceRunner::Wait(int32_t index) {
  const ReceivePlan& receive = plan_.receives[index];
  Tensor& buffer = buffers_[receive.buffer];
  PIPELAB_ASSIGN_OR_RETURN(buffer, AwaitTicket(receive_tickets_[index]));
  if (receive.hop != nullptr) return receive.hop->ReceiveHop(receive.gradient, std::move(buffer));
  if (PartsOf(receive.bytes) == 1) return absl::OkStatus();
  PIPELAB_ASSIGN_OR_RETURN(buffer, GatherMessage(receive.spec, buffer));
  return absl::OkStatus();
}

// Other jobs, until the message is there that the next instruction waits for. At the list's end
// nothing tells the device that the others are through, but the fill's time. In front of a
// collective nothing runs: there the others wait for this device.
void DeviceRunner::RunFill(const Instruction& i) {
  if (fill_ == nullptr) return;
  const Fill& fill = program_->fills[i.arg];
  const size_t next = static_cast<size_t>(&i - instructions_.data()) + 1;
  if (next == instructions_.size()) {
    fill_->Run(fill, [] { return false; });
  } else if (instructions_[next].op == OpCode::kWait) {
    const Ticket ticket = receive_tickets_[plan_.steps[next]];
    fill_->Run(fill, [&] { return communicator_->Arrived(ticket); });
  }
}

// All ranks of the group are here, at the same place of their list. The part is paid for until the
// whole is there.
absl::StatusOr<Tensor> DeviceRunner::GatherMessage(const TensorSpec& spec, const Tensor& part) {
  Tensor whole = arena_->Allocate(spec.type, spec.shape, MemoryKind::kActivation);
  peers_->GatherRows(part, whole.Reshape({tensor_parallel_, part.size()}), /*samples=*/1);
  PIPELAB_RETURN_IF_ERROR(peers_->status());
  return whole;
}

// The module's tensors are exchanged for others of the same values once they are there.
absl::Status DeviceRunner::MoveToHost(const Instruction& i, int32_t index) {
  if (i.op == OpCode::kHostWait) {
    host_copier_.Wait(i.arg);
    return absl::OkStatus();
  }
  PIPELAB_ASSIGN_OR_RETURN(std::vector<Tensor*> kept, plan_.host_copies[index]->Kept(i.action));
  return host_copier_.Begin(i.op == OpCode::kReload, kept);
}

std::vector<HostCopy> DeviceRunner::HostCopies() const {
  std::vector<HostCopy> copies;
  for (size_t n = 0; n < instructions_.size(); ++n) {
    const Instruction& i = instructions_[n];
    if (i.op != OpCode::kOffload && i.op != OpCode::kReload) continue;
    const HostCopier::Times times = host_copier_.TimesOf(i.arg);
    copies.push_back({{times.begin_ns, times.end_ns, 0}, static_cast<int64_t>(n)});
  }
  return copies;
}

absl::Status DeviceRunner::RunCollective(OpCode op, int32_t index) {
  const CollectivePlan& plan = plan_.collectives[index];
  CollectiveState& state = collectives_[index];
  switch (op) {
    case OpCode::kReduce:
    case OpCode::kGather:
    case OpCode::kNorm:
      return Begin(plan, &state);
    case OpCode::kReduceWait:
    case OpCode::kGatherWait:
    case OpCode::kNormWait:
      return End(plan, &state);
    default:
      return plan.modules[0]->Release();  // of a group there is one
  }
}

absl::Status DeviceRunner::Begin(const CollectivePlan& plan, CollectiveState* state) {
  PIPELAB_RETURN_IF_ERROR(BeginCollective(plan, communicator_, state));
  collective_bytes_ += state->traffic;
  state->experts.resize(plan.experts.size());
  for (size_t k = 0; k < plan.experts.size(); ++k) {
    PIPELAB_RETURN_IF_ERROR(Begin(plan.experts[k], &state->experts[k]));
  }
  return absl::OkStatus();
}

absl::Status DeviceRunner::End(const CollectivePlan& plan, CollectiveState* state) {
  PIPELAB_RETURN_IF_ERROR(AwaitTicket(state->ticket).status());
  PIPELAB_RETURN_IF_ERROR(EndCollective(plan, state));
  for (size_t k = 0; k < plan.experts.size(); ++k) {
    PIPELAB_RETURN_IF_ERROR(End(plan.experts[k], &state->experts[k]));
  }
  return absl::OkStatus();
}

// Sends are not waited for where they happen; here, at the end, their memory must be free again.
absl::Status DeviceRunner::FinishSends() {
  for (const auto& [ticket, instruction] : send_tickets_) {
    absl::Status status = AwaitTicket(ticket).status();
    if (!status.ok()) return AtPlace(instructions_[instruction], std::move(status));
  }
  send_tickets_.clear();
  return absl::OkStatus();
}

absl::StatusOr<Tensor> DeviceRunner::AwaitTicket(Ticket ticket) {
  waits_.fetch_add(1, std::memory_order_relaxed);
  absl::StatusOr<Tensor> result = communicator_->Wait(ticket, absl::InfiniteDuration());
  waits_.fetch_add(1, std::memory_order_relaxed);
  return result;
}

std::string DeviceRunner::Doing(absl::string_view doing) const {
  const size_t n = static_cast<size_t>(position());
  if (n >= instructions_.size()) return absl::StrCat(name_, " is between steps");
  return absl::StrCat(name_, " ", doing, " ", Describe(*program_, instructions_[n]));
}

void DeviceRunner::Clear() {
  host_copier_.Reset();
  for (Tensor& buffer : buffers_) buffer = Tensor();
  for (CollectiveState& state : collectives_) state = CollectiveState();
}

}  // namespace pipelab
