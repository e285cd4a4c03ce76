// The first pass: values, their rows and their buffers.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipelines/runtime/describe.h"
#include "pipelines/runtime/device_planner.h"
#include "tools/base/status_macros.h"

namespace pipelab {

// First pass: which values leave, arrive, or stay.
absl::Status DevicePlanner::FindValues(const Instruction& i) {
  const bool message = i.op == OpCode::kSend || i.op == OpCode::kReceive || i.op == OpCode::kWait;
  if (message && (i.arg < 0 || i.arg >= static_cast<int>(program_.messages.size()))) {
    return Error(Describe(program_, i), absl::StrCat("there is no message ", i.arg));
  }
  const bool hop = message && program_.messages[i.arg].is_hop();
  if (i.op == OpCode::kSend && !hop) {
    Source& source = sources_[EndOf(program_.messages[i.arg], /*consumer=*/false).value];
    if (source.send_buffer < 0) source.send_buffer = plan_.num_buffers++;
    ++source.sends_left;
  } else if (i.op == OpCode::kReceive) {
    return PlanReceive(i);
  } else if (i.op == OpCode::kCompute && Consumes(i.action)) {
    return FindLocalRows(i.action);
  }
  return absl::OkStatus();
}

// The rows of what `a` produces that this device consumes itself.
absl::Status DevicePlanner::FindLocalRows(const Action& a) {
  for (int edge : EdgesOut(a)) {
    const Value made(edge, a.kind != ActionKind::kForward, a.micro_batch, a.slice);
    for (int reader : flows_.Along(edge, std::get<1>(made)).Readers(a.micro_batch)) {
      Value taken = made;
      std::get<2>(taken) = reader;
      PIPELAB_RETURN_IF_ERROR(KeepRows(a, made, taken));
    }
  }
  return absl::OkStatus();
}

// The rows that a value's producer and one of its consumers' micro-batches have in common here.
absl::Status DevicePlanner::KeepRows(const Action& a, const Value& made, const Value& taken) {
  const HeldStage &from = ProducerStage(made), &to = ConsumerStage(taken);
  if (from.module == nullptr || to.module == nullptr) return absl::OkStatus();
  // Counted from the first of all rows, a smallest micro-batch being as many units as suit both
  // groups.
  const int64_t size_from = schedule_.MicroBatchSize(Producer(made)) * to.data_parallel_size;
  const int64_t size_to = schedule_.MicroBatchSize(Consumer(made)) * from.data_parallel_size;
  const int64_t micro_batch_from = std::get<2>(made) * from.data_parallel_size * size_from;
  const PassMap& passes = flows_.Along(std::get<0>(made), std::get<1>(made));
  const int64_t micro_batch_to =
      passes.SamplePass(std::get<2>(taken)) * to.data_parallel_size * size_to;
  const int64_t first_from = micro_batch_from + from.member * size_from;
  const int64_t first_to = micro_batch_to + to.member * size_to;
  const int64_t begin = std::max(first_from, first_to);
  const int64_t end = std::min(first_from + size_from, first_to + size_to);
  if (begin >= end) return absl::OkStatus();
  const TensorSpec &made_spec = *ProducerSpec(made), &taken_spec = *ConsumerSpec(taken);
  PIPELAB_ASSIGN_OR_RETURN(Part produced, Rows(from, made_spec,
                                               {begin - micro_batch_from, end - micro_batch_from,
                                                from.data_parallel_size * size_from},
                                               ToString(a)));
  PIPELAB_ASSIGN_OR_RETURN(Part consumed, Rows(to, taken_spec,
                                               {begin - micro_batch_to, end - micro_batch_to,
                                                to.data_parallel_size * size_to},
                                               ToString(a)));
  if (produced.whole && consumed.whole &&
      (made_spec.type != taken_spec.type || made_spec.shape != taken_spec.shape)) {
    return Error(ToString(a),
                 absl::StrCat("edge ", std::get<0>(made), " is ", SpecToString(made_spec),
                              " at one end and ", SpecToString(taken_spec), " at the other"));
  }
  produced.buffer = consumed.buffer = plan_.num_buffers++;
  sources_[made].local.push_back(produced);
  inputs_[taken].push_back(consumed);
  return absl::OkStatus();
}

absl::Status DevicePlanner::PlanReceive(const Instruction& i) {
  const Message& m = program_.messages[i.arg];
  if (m.is_hop()) return PlanHop(i, m);
  const auto [value, rows] = EndOf(m, /*consumer=*/true);
  const HeldStage& to = ConsumerStage(value);
  if (to.module == nullptr || m.to_device != device_) {
    return Error(Describe(program_, i), "the message is for another device");
  }
  ReceivePlan receive;
  receive.peer = m.from_device;
  receive.spec = *ConsumerSpec(value);
  PIPELAB_ASSIGN_OR_RETURN(Part part, Rows(to, receive.spec, rows, Describe(program_, i)));
  if (!part.whole) receive.spec.shape[0] = part.row_end - part.row_begin;
  receive.bytes = NumElements(receive.spec.shape) * SizeOf(receive.spec.type);
  receive.buffer = part.buffer = plan_.num_buffers++;
  inputs_[value].push_back(part);
  receive_of_message_[i.arg] = static_cast<int32_t>(plan_.receives.size());
  plan_.receives.push_back(std::move(receive));
  return absl::OkStatus();
}

// The receiving end of weights that travel, or of their gradients.
absl::Status DevicePlanner::PlanHop(const Instruction& i, const Message& m) {
  ReceivePlan receive;
  receive.hop = held_.OfReplica(i.replica, m.hop_of_stage).module;
  if (receive.hop == nullptr || m.to_device != device_) {
    return Error(Describe(program_, i), "the hop is to another device");
  }
  receive.peer = m.from_device;
  receive.gradient = m.gradient;
  receive.spec = receive.hop->HopSpec(m.gradient);
  receive.bytes = NumElements(receive.spec.shape) * SizeOf(receive.spec.type);
  receive.buffer = plan_.num_buffers++;
  receive_of_message_[i.arg] = static_cast<int32_t>(plan_.receives.size());
  plan_.receives.push_back(std::move(receive));
  return absl::OkStatus();
}

}  // namespace pipelab
