#include "pipelines/runtime/device_plan.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "pipelines/runtime/place.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// A tensor of the schedule: the activation of an edge, or its gradient, for a micro-batch slice.
using Value = std::tuple<int, bool, int, int>;  // edge, gradient, micro-batch, slice

// A range of a micro-batch's rows as a fraction: [begin, end) / parts.
struct Fraction {
  int64_t begin = 0, end = 1, parts = 1;
};

// What one stage of one replica is to this device.
struct StagePlan {
  StageModule* module = nullptr;
  int64_t index = 0, group_size = 1;  // this device in the stage's group
  std::vector<const TensorSpec*> in_specs, out_specs;
};

class Planner {
 public:
  Planner(const Program& program, int device, const std::vector<std::vector<StageModule*>>& modules)
      : program_(program), schedule_(program.schedule), device_(device), modules_(modules) {}

  absl::StatusOr<DevicePlan> Make() {
    PIPELAB_RETURN_IF_ERROR(PlanStages());
    recomputed_ = schedule_.RecomputedStages();
    const std::vector<Instruction>& list = program_.instructions[device_];
    plan_.steps.reserve(list.size());
    // A part must be known before the compute that takes it: senders and receivers first.
    for (const Instruction& i : list) PIPELAB_RETURN_IF_ERROR(FindValues(i));
    for (const Instruction& i : list) PIPELAB_RETURN_IF_ERROR(PlanInstruction(i));
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

  absl::Status PlanStages();
  absl::Status FindValues(const Instruction& i);
  absl::Status FindLocalRows(const Action& a);
  absl::Status PlanInstruction(const Instruction& i);
  absl::Status PlanCompute(const Instruction& i);
  absl::Status PlanReceive(const Instruction& i);
  absl::Status PlanSend(const Instruction& i);
  absl::Status PlanReduce(const Instruction& i);

  StagePlan& Stage(int micro_batch, int stage) {
    return stages_[schedule_.placement.replica_of_micro_batch[micro_batch]][stage];
  }
  // The rows of `fraction` in the tensor that this device holds of a stage.
  absl::StatusOr<Part> RowsOf(const StagePlan& stage, const TensorSpec& spec, Fraction fraction,
                              const std::string& place) const;
  static Fraction RowsHeld(int64_t index, int64_t group_size) {
    return {index, index + 1, group_size};
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
  // The shape of an edge's tensor at one of its ends.
  const TensorSpec* SpecAt(const StagePlan& stage, int stage_number, int edge, bool in) const {
    const std::vector<int>& edges =
        in ? schedule_.stages.in_edges[stage_number] : schedule_.stages.out_edges[stage_number];
    const auto at = std::find(edges.begin(), edges.end(), edge) - edges.begin();
    return in ? stage.in_specs[at] : stage.out_specs[at];
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
  const TensorSpec* ProducerSpec(const Value& v) {
    return SpecAt(Stage(std::get<2>(v), Producer(v)), Producer(v), std::get<0>(v), std::get<1>(v));
  }
  const TensorSpec* ConsumerSpec(const Value& v) {
    return SpecAt(Stage(std::get<2>(v), Consumer(v)), Consumer(v), std::get<0>(v), !std::get<1>(v));
  }
  static Value ValueOf(const Message& m) {
    return Value(m.edge, m.gradient, m.micro_batch, m.slice);
  }

  const Program& program_;
  const Schedule& schedule_;
  const int device_;
  const std::vector<std::vector<StageModule*>>& modules_;

  DevicePlan plan_;
  std::vector<bool> recomputed_;
  std::vector<std::vector<StagePlan>> stages_;  // [replica][stage]; module null where not held
  absl::flat_hash_map<Value, Source> sources_;
  absl::flat_hash_map<Value, absl::InlinedVector<Part, 1>> inputs_;
  absl::flat_hash_map<int32_t, int32_t> receive_of_message_;
  absl::flat_hash_set<int32_t> posted_;  // messages received but not waited for so far in the list
};

absl::Status Planner::PlanStages() {
  const Placement& placement = schedule_.placement;
  stages_.resize(placement.num_replicas());
  for (int r = 0; r < placement.num_replicas(); ++r) {
    stages_[r].resize(schedule_.num_stages());
    for (int s = 0; s < schedule_.num_stages(); ++s) {
      const std::vector<int>& group = placement.groups[r][s];
      const auto at = std::find(group.begin(), group.end(), device_);
      if (at == group.end()) continue;
      StagePlan& stage = stages_[r][s];
      if (r < static_cast<int>(modules_.size()) && s < static_cast<int>(modules_[r].size())) {
        stage.module = modules_[r][s];
      }
      if (stage.module == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat("device ", device_, " holds stage ", s,
                                                       " of replica ", r,
                                                       " and has no module for it"));
      }
      stage.index = at - group.begin();
      stage.group_size = static_cast<int64_t>(group.size());
      for (size_t e = 0; e < schedule_.stages.in_edges[s].size(); ++e) {
        plan_.specs.push_back(std::make_unique<TensorSpec>(stage.module->InputSpec(e)));
        stage.in_specs.push_back(plan_.specs.back().get());
      }
      for (size_t e = 0; e < schedule_.stages.out_edges[s].size(); ++e) {
        plan_.specs.push_back(std::make_unique<TensorSpec>(stage.module->OutputSpec(e)));
        stage.out_specs.push_back(plan_.specs.back().get());
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Part> Planner::RowsOf(const StagePlan& stage, const TensorSpec& spec,
                                     Fraction fraction, const std::string& place) const {
  const Fraction held = RowsHeld(stage.index, stage.group_size);
  Part part;
  if (fraction.begin * held.parts == held.begin * fraction.parts &&
      fraction.end * held.parts == held.end * fraction.parts) {
    if (!spec.shape.empty()) part.row_end = spec.shape[0];
    return part;
  }
  part.whole = false;
  const int64_t rows = spec.shape.empty() ? 0 : spec.shape[0];
  // (fraction - held) of the whole micro-batch's rows * group_size rows.
  const int64_t begin = (fraction.begin * held.parts - held.begin * fraction.parts) * rows;
  const int64_t end = (fraction.end * held.parts - held.begin * fraction.parts) * rows;
  if (rows == 0 || begin % fraction.parts != 0 || end % fraction.parts != 0) {
    return Error(place,
                 absl::StrCat(ShapeToString(spec.shape), ", the rows of one of ", stage.group_size,
                              " group members, cannot be cut into parts of 1/", fraction.parts,
                              " micro-batch"));
  }
  part.row_begin = begin / fraction.parts;
  part.row_end = end / fraction.parts;
  if (part.row_begin < 0 || part.row_end > rows || part.row_begin >= part.row_end) {
    return Error(place, "the message's rows are not among the device's");
  }
  return part;
}

// First pass: which values leave, arrive, or stay.
absl::Status Planner::FindValues(const Instruction& i) {
  const bool message = i.op == OpCode::kSend || i.op == OpCode::kReceive || i.op == OpCode::kWait;
  if (message && (i.arg < 0 || i.arg >= static_cast<int>(program_.messages.size()))) {
    return Error(Place(program_, i), absl::StrCat("there is no message ", i.arg));
  }
  if (i.op == OpCode::kSend) {
    Source& source = sources_[ValueOf(program_.messages[i.arg])];
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
    const Value value(edge, a.kind != ActionKind::kForward, a.micro_batch, a.slice);
    const StagePlan &from = Stage(a.micro_batch, Producer(value)),
                    &to = Stage(a.micro_batch, Consumer(value));
    if (from.module == nullptr || to.module == nullptr) continue;
    // The overlap of both row ranges, in parts that suit both groups.
    Fraction overlap;
    overlap.parts = from.group_size * to.group_size;
    overlap.begin = std::max(from.index * to.group_size, to.index * from.group_size);
    overlap.end = std::min((from.index + 1) * to.group_size, (to.index + 1) * from.group_size);
    if (overlap.begin >= overlap.end) continue;
    const TensorSpec &made = *ProducerSpec(value), &taken = *ConsumerSpec(value);
    PIPELAB_ASSIGN_OR_RETURN(Part produced, RowsOf(from, made, overlap, ToString(a)));
    PIPELAB_ASSIGN_OR_RETURN(Part consumed, RowsOf(to, taken, overlap, ToString(a)));
    if (produced.whole && consumed.whole &&
        (made.type != taken.type || made.shape != taken.shape)) {
      return Error(ToString(a),
                   absl::StrCat("edge ", edge, " is ", SpecToString(made), " at one end and ",
                                SpecToString(taken), " at the other"));
    }
    produced.buffer = consumed.buffer = plan_.num_buffers++;
    sources_[value].local.push_back(produced);
    inputs_[value].push_back(consumed);
  }
  return absl::OkStatus();
}

absl::Status Planner::PlanReceive(const Instruction& i) {
  const Message& m = program_.messages[i.arg];
  const Value value = ValueOf(m);
  const StagePlan& to = Stage(m.micro_batch, Consumer(value));
  if (to.module == nullptr || m.to_device != device_) {
    return Error(Place(program_, i), "the message is for another device");
  }
  ReceivePlan receive;
  receive.peer = m.from_device;
  receive.spec = *ConsumerSpec(value);
  PIPELAB_ASSIGN_OR_RETURN(
      Part part,
      RowsOf(to, receive.spec, {m.row_begin, m.row_end, m.row_parts}, Place(program_, i)));
  if (!part.whole) receive.spec.shape[0] = part.row_end - part.row_begin;
  receive.bytes = NumElements(receive.spec.shape) * SizeOf(receive.spec.type);
  receive.buffer = part.buffer = plan_.num_buffers++;
  inputs_[value].push_back(part);
  receive_of_message_[i.arg] = static_cast<int32_t>(plan_.receives.size());
  plan_.receives.push_back(std::move(receive));
  return absl::OkStatus();
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
      return PlanReduce(i);
  }
  return absl::InternalError("unknown operation");
}

absl::Status Planner::PlanCompute(const Instruction& i) {
  const Action& a = i.action;
  ComputePlan compute;
  const int replica = a.kind == ActionKind::kStep
                          ? i.replica
                          : schedule_.placement.replica_of_micro_batch[a.micro_batch];
  compute.module = stages_[replica][a.stage].module;
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
      int64_t covered = 0;
      for (const Part& part : input.parts)
        covered += part.row_begin == covered ? part.row_end - covered : -1;
      const bool complete = input.parts.size() == 1
                                ? input.parts[0].whole
                                : !input.parts.empty() && covered == input.spec->shape[0];
      if (!complete) {
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
  const Value value = ValueOf(m);
  const StagePlan& from = Stage(m.micro_batch, Producer(value));
  if (from.module == nullptr || m.from_device != device_) {
    return Error(Place(program_, i), "the message is from another device");
  }
  SendPlan send;
  send.peer = m.to_device;
  PIPELAB_ASSIGN_OR_RETURN(send.part,
                           RowsOf(from, *ProducerSpec(value), {m.row_begin, m.row_end, m.row_parts},
                                  Place(program_, i)));
  Source& source = sources_[value];
  send.part.buffer = source.send_buffer;
  send.last = --source.sends_left == 0;
  plan_.steps.push_back(static_cast<int32_t>(plan_.sends.size()));
  plan_.sends.push_back(send);
  return absl::OkStatus();
}

absl::Status Planner::PlanReduce(const Instruction& i) {
  if (i.arg < 0 || i.arg >= static_cast<int>(program_.reductions.size())) {
    return Error("reduction", absl::StrCat("there is no reduction ", i.arg));
  }
  const Reduction& reduction = program_.reductions[i.arg];
  ReducePlan reduce;
  reduce.parameter = reduction.parameter;
  std::set<int> devices;
  for (const ReductionMember& m : reduction.members) {
    devices.insert(m.device);
    if (m.device != device_) continue;
    StageModule* module = stages_[m.replica][m.stage].module;
    if (module == nullptr) return Error(Place(program_, i), "the device does not hold a member");
    reduce.modules.push_back(module);
  }
  if (reduce.modules.empty()) return Error(Place(program_, i), "the device holds no member");
  reduce.devices.assign(devices.begin(), devices.end());
  plan_.steps.push_back(static_cast<int32_t>(plan_.reduces.size()));
  plan_.reduces.push_back(std::move(reduce));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DevicePlan> MakeDevicePlan(const Program& program, int device,
                                          const std::vector<std::vector<StageModule*>>& modules) {
  return Planner(program, device, modules).Make();
}

}  // namespace pipelab
