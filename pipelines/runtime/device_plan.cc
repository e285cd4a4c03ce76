#include "pipelines/runtime/device_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "pipelines/ir/pieces.h"
#include "pipelines/runtime/place.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// A tensor of the schedule, at one end of an edge: its activation, or the gradient of that, for a
// slice of a micro-batch of the end's stage.
using Value = std::tuple<int, bool, int, int>;  // edge, gradient, micro-batch, slice

class Planner {
 public:
  Planner(const Program& program, int device, HeldStages held)
      : program_(program), schedule_(program.schedule), device_(device), held_(std::move(held)) {}

  absl::StatusOr<DevicePlan> Make() {
    recomputed_ = schedule_.RecomputedStages();
    const std::vector<Instruction>& list = program_.instructions[device_];
    plan_.steps.reserve(list.size());
    // A part must be known before the compute that takes it: senders and receivers first.
    for (const Instruction& i : list) PIPELAB_RETURN_IF_ERROR(FindValues(i));
    for (const Instruction& i : list) PIPELAB_RETURN_IF_ERROR(PlanInstruction(i));
    plan_.specs = std::move(held_).TakeSpecs();
    return std::move(plan_);
  }

 private:
  struct Source {  // a value that this device produces
    int32_t send_buffer = -1;
    int sends_left = 0;
    absl::InlinedVector<Part, 1> local;  // rows of the producer's tensor
  };

  absl::Status Error(absl::string_view place, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("device ", device_, ", ", place, ": ", what));
  }

  absl::Status FindValues(const Instruction& i);
  absl::Status FindLocalRows(const Action& a);
  absl::Status KeepRows(const Action& a, const Value& made, const Value& taken);
  absl::Status PlanInstruction(const Instruction& i);
  absl::Status PlanCompute(const Instruction& i);
  absl::Status PlanReceive(const Instruction& i);
  absl::Status PlanSend(const Instruction& i);
  absl::Status PlanCollectives(const Instruction& i);

  // The rows of `fraction` in the tensor that the device holds of a stage.
  absl::StatusOr<Part> Rows(const HeldStage& stage, const TensorSpec& spec, Fraction fraction,
                            const std::string& place) const {
    absl::StatusOr<Part> part = stage.Rows(spec, fraction);
    if (!part.ok()) return Error(place, part.status().message());
    return part;
  }
  bool Consumes(const Action& a) const {
    return a.kind == ActionKind::kForward || a.kind == ActionKind::kBackward ||
           a.kind == ActionKind::kBackwardInput;
  }
  const std::vector<int>& EdgesOut(const Action& a) const {
    return a.kind == ActionKind::kForward ? schedule_.stages.out_edges[a.stage]
                                          : schedule_.stages.in_edges[a.stage];
  }
  const std::vector<int>& EdgesIn(const Action& a) const {
    return a.kind == ActionKind::kForward ? schedule_.stages.in_edges[a.stage]
                                          : schedule_.stages.out_edges[a.stage];
  }
  // Ends of a value: the stage that makes it, the one that takes it. A gradient runs against its
  // edge.
  int Producer(const Value& v) const {
    const StageGraph::Edge& e = schedule_.stages.edges[std::get<0>(v)];
    return std::get<1>(v) ? e.to : e.from;
  }
  int Consumer(const Value& v) const {
    const StageGraph::Edge& e = schedule_.stages.edges[std::get<0>(v)];
    return std::get<1>(v) ? e.from : e.to;
  }
  // Of a value at its producer's end, and at its consumer's.
  const HeldStage& ProducerStage(const Value& v) const {
    return held_.Of(std::get<2>(v), Producer(v));
  }
  const HeldStage& ConsumerStage(const Value& v) const {
    return held_.Of(std::get<2>(v), Consumer(v));
  }
  const TensorSpec* ProducerSpec(const Value& v) const {
    return held_.SpecAt(std::get<2>(v), std::get<3>(v), Producer(v), std::get<0>(v),
                        std::get<1>(v));
  }
  const TensorSpec* ConsumerSpec(const Value& v) const {
    return held_.SpecAt(std::get<2>(v), std::get<3>(v), Consumer(v), std::get<0>(v),
                        !std::get<1>(v));
  }
  // A message is a part of a value, or all of it, at either end.
  struct MessageEnd {
    Value value;
    Fraction rows;  // of the value's micro-batch
  };
  MessageEnd EndOf(const Message& m, bool consumer) const {
    const StageGraph::Edge& e = schedule_.stages.edges[m.edge];
    const int messages = MessagesOf(schedule_, e, consumer == m.gradient ? e.from : e.to);
    const int64_t first = int64_t{m.micro_batch % messages} * m.row_parts;
    return {Value(m.edge, m.gradient, m.micro_batch / messages, m.slice),
            {first + m.row_begin, first + m.row_end, int64_t{messages} * m.row_parts}};
  }

  const Program& program_;
  const Schedule& schedule_;
  const int device_;
  HeldStages held_;

  DevicePlan plan_;
  std::vector<bool> recomputed_;
  absl::flat_hash_map<Value, Source> sources_;                       // at the producer's end
  absl::flat_hash_map<Value, absl::InlinedVector<Part, 1>> inputs_;  // at the consumer's
  absl::flat_hash_map<int32_t, int32_t> receive_of_message_;
  absl::flat_hash_map<std::pair<bool, int32_t>, int32_t> collective_;  // begun: (reduction, id)
  absl::flat_hash_set<int32_t> posted_;  // messages received but not waited for so far in the list
};

// First pass: which values leave, arrive, or stay.
absl::Status Planner::FindValues(const Instruction& i) {
  const bool message = i.op == OpCode::kSend || i.op == OpCode::kReceive || i.op == OpCode::kWait;
  if (message && (i.arg < 0 || i.arg >= static_cast<int>(program_.messages.size()))) {
    return Error(Place(program_, i), absl::StrCat("there is no message ", i.arg));
  }
  if (i.op == OpCode::kSend) {
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
absl::Status Planner::FindLocalRows(const Action& a) {
  for (int edge : EdgesOut(a)) {
    const Value made(edge, a.kind != ActionKind::kForward, a.micro_batch, a.slice);
    const MicroBatchRange taken =
        schedule_.SharedMicroBatches(a.stage, a.micro_batch, Consumer(made));
    for (int m = taken.begin; m < taken.end; ++m) {
      Value end = made;
      std::get<2>(end) = m;
      PIPELAB_RETURN_IF_ERROR(KeepRows(a, made, end));
    }
  }
  return absl::OkStatus();
}

// The rows that a value's producer and one of its consumers' micro-batches have in common here.
absl::Status Planner::KeepRows(const Action& a, const Value& made, const Value& taken) {
  const HeldStage &from = ProducerStage(made), &to = ConsumerStage(taken);
  if (from.module == nullptr || to.module == nullptr) return absl::OkStatus();
  // Counted from the first of all rows, a smallest micro-batch being as many units as suit both
  // groups.
  const int64_t size_from = schedule_.MicroBatchSize(Producer(made)) * to.group_size;
  const int64_t size_to = schedule_.MicroBatchSize(Consumer(made)) * from.group_size;
  const int64_t micro_batch_from = std::get<2>(made) * from.group_size * size_from;
  const int64_t micro_batch_to = std::get<2>(taken) * to.group_size * size_to;
  const int64_t first_from = micro_batch_from + from.member * size_from;
  const int64_t first_to = micro_batch_to + to.member * size_to;
  const int64_t begin = std::max(first_from, first_to);
  const int64_t end = std::min(first_from + size_from, first_to + size_to);
  if (begin >= end) return absl::OkStatus();
  const TensorSpec &made_spec = *ProducerSpec(made), &taken_spec = *ConsumerSpec(taken);
  PIPELAB_ASSIGN_OR_RETURN(Part produced, Rows(from, made_spec,
                                               {begin - micro_batch_from, end - micro_batch_from,
                                                from.group_size * size_from},
                                               ToString(a)));
  PIPELAB_ASSIGN_OR_RETURN(
      Part consumed,
      Rows(to, taken_spec, {begin - micro_batch_to, end - micro_batch_to, to.group_size * size_to},
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

absl::Status Planner::PlanReceive(const Instruction& i) {
  const Message& m = program_.messages[i.arg];
  const auto [value, rows] = EndOf(m, /*consumer=*/true);
  const HeldStage& to = ConsumerStage(value);
  if (to.module == nullptr || m.to_device != device_) {
    return Error(Place(program_, i), "the message is for another device");
  }
  ReceivePlan receive;
  receive.peer = m.from_device;
  receive.spec = *ConsumerSpec(value);
  PIPELAB_ASSIGN_OR_RETURN(Part part, Rows(to, receive.spec, rows, Place(program_, i)));
  if (!part.whole) receive.spec.shape[0] = part.row_end - part.row_begin;
  receive.bytes = NumElements(receive.spec.shape) * SizeOf(receive.spec.type);
  receive.buffer = part.buffer = plan_.num_buffers++;
  inputs_[value].push_back(part);
  receive_of_message_[i.arg] = static_cast<int32_t>(plan_.receives.size());
  plan_.receives.push_back(std::move(receive));
  return absl::OkStatus();
}

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

// Second pass: one step an instruction.
absl::Status Planner::PlanInstruction(const Instruction& i) {
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
        return Error(Place(program_, i), "no receive is posted for it");
      }
      plan_.steps.push_back(receive_of_message_[i.arg]);
      return absl::OkStatus();
    case OpCode::kReduce:
    case OpCode::kReduceWait:
    case OpCode::kGather:
    case OpCode::kGatherWait:
    case OpCode::kRelease:
      return PlanCollectives(i);
  }
  return absl::InternalError("unknown operation");
}

absl::Status Planner::PlanCompute(const Instruction& i) {
  const Action& a = i.action;
  ComputePlan compute;
  const int replica =
      a.kind == ActionKind::kStep ? i.replica : schedule_.ReplicaOf(a.stage, a.micro_batch);
  compute.module = held_.OfReplica(replica, a.stage).module;
  compute.drop = a.kind == ActionKind::kForward && recomputed_[a.stage];
  if (compute.module == nullptr) {
    return Error(Place(program_, i), "the device does not hold the stage");
  }
  if (Consumes(a)) {
    const bool gradient = a.kind != ActionKind::kForward;
    for (int edge : EdgesIn(a)) {
      const Value value(edge, gradient, a.micro_batch, a.slice);
      InputPlan input;
      input.spec = ConsumerSpec(value);
      input.parts = inputs_[value];
      std::sort(input.parts.begin(), input.parts.end(),
                [](const Part& x, const Part& y) { return x.row_begin < y.row_begin; });
      if (!Covered(input)) {
        return Error(Place(program_, i),
                     absl::StrCat("its input on edge ", edge,
                                  " is neither made here nor received, or only in part"));
      }
      compute.inputs.push_back(std::move(input));
    }
    for (int edge : EdgesOut(a)) {
      const Value value(edge, gradient, a.micro_batch, a.slice);
      OutputPlan output;
      output.spec = ProducerSpec(value);
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

absl::Status Planner::PlanSend(const Instruction& i) {
  const Message& m = program_.messages[i.arg];
  const auto [value, rows] = EndOf(m, /*consumer=*/false);
  const HeldStage& from = ProducerStage(value);
  if (from.module == nullptr || m.from_device != device_) {
    return Error(Place(program_, i), "the message is from another device");
  }
  SendPlan send;
  send.peer = m.to_device;
  PIPELAB_ASSIGN_OR_RETURN(send.part, Rows(from, *ProducerSpec(value), rows, Place(program_, i)));
  Source& source = sources_[value];
  send.part.buffer = source.send_buffer;
  send.last = --source.sends_left == 0;
  plan_.steps.push_back(static_cast<int32_t>(plan_.sends.size()));
  plan_.sends.push_back(send);
  return absl::OkStatus();
}

// A wait has the plan of what it waits for; a release that of its gather.
absl::Status Planner::PlanCollectives(const Instruction& i) {
  const bool begins = i.op == OpCode::kReduce || i.op == OpCode::kGather;
  const bool reduces = i.op == OpCode::kReduce || i.op == OpCode::kReduceWait;
  const std::pair<bool, int32_t> key(reduces, i.arg);
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

}  // namespace

absl::StatusOr<DevicePlan> MakeDevicePlan(const Program& program, int device,
                                          const std::vector<std::vector<StageModule*>>& modules) {
  PIPELAB_ASSIGN_OR_RETURN(HeldStages held, HeldStages::Make(program.schedule, device, modules));
  return Planner(program, device, std::move(held)).Make();
}

}  // namespace pipelab
