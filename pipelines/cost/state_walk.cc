#include "pipelines/cost/state_walk.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "pipelines/cost/sharded_state.h"

namespace pipelab {
namespace {

constexpr int64_t kElement = 4;  // bytes of what the optimizer keeps

void AddStateParts(const StateParts& more, StateParts* sum) {
  sum->weights += more.weights;
  sum->gradients += more.gradients;
  sum->optimizer += more.optimizer;
  sum->statistics += more.statistics;
  sum->older_weights += more.older_weights;
}

// Without gradients and an optimizer where nothing is learned.
CopyState StateOfCopy(const CostTable& costs, const Program& program, const StageCopy& copy) {
  CopyState state = StateOf(costs.stages[copy.stage].memory, ShardOf(program, copy));
  if (program.schedule.forward_only) state.always.gradients = state.always.optimizer = Bytes(0);
  return state;
}

// The buffers of the stages that a device has.
Bytes BuffersOf(const CostTable& costs, const Program& program, uint64_t buffers) {
  return program.schedule.forward_only ? Bytes(0) : costs.GradientBuffers(buffers);
}

bool IsWeightGradient(const Instruction& i) {
  return i.op == OpCode::kCompute &&
         (i.action.kind == ActionKind::kBackward || i.action.kind == ActionKind::kBackwardWeight);
}

}  // namespace

CopyState StateOf(const StageMemory& m, const Shard& shard) {
  CopyState state;
  StateParts& always = state.always;
  always.statistics = m.statistics;
  always.weights = m.weights;
  always.optimizer = m.optimizer;
  always.gradients = m.state - m.statistics - m.weights - m.optimizer;
  if (!shard.divides()) return state;
  const StateNumbers& n = m.numbers;
  const Shard of_experts = shard.OfExperts();
  const int64_t values = m.num_weights(), own = m.num_gradients();
  const int64_t experts = m.num_expert_gradients(), tied = values - own - experts;
  const int64_t part = shard.PartOf(own) + of_experts.PartOf(experts);
  // What a device puts together; experts that no other copy has are always whole.
  const bool shared = of_experts.parts > 1;
  const int64_t whole = shard.Padded(own) + (shared ? of_experts.Padded(experts) : 0);
  const int64_t alone = shared ? 0 : experts;
  const int64_t later_uses =  // of a value in the stage
      always.gradients.value() / n.gradients - values;
  const int64_t tensors = values == 0 ? 0 : m.optimizer.value() / (kElement * values);
  always.weights = Bytes(n.weights) * (tied + alone + whole);
  always.gradients = Bytes(n.gradients) * (tied + alone + whole + later_uses);
  always.optimizer = Bytes(kElement) * (tied + (shard.index < 0 ? 0 : part)) * tensors;
  if (shard.sharding == Sharding::kFully) {
    always.weights = Bytes(n.weights) * tied + Bytes(n.part_weights()) * part;
    state.gathered = Bytes(n.weights) * whole;
  }
  if (ShardsGradients(shard.sharding)) {
    always.gradients = Bytes(n.gradients) * tied + Bytes(n.part_gradients()) * part;
    state.run_gradients = Bytes(n.gradients) * (whole + later_uses);
  }
  if (shard.travels) {
    always.gradients = Bytes(n.gradients) * tied;
    state.hop_gradients = HopBytes(m, /*gradient=*/true);
  }
  return state;
}

StateWalk::StateWalk(const CostTable& costs, const Program& program, int device)
    : costs_(costs), program_(program) {
  const Schedule& s = program.schedule;
  uint64_t buffers = 0;
  for (int r = 0; r < s.placement.num_replicas(); ++r) {
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      const std::vector<int>& group = s.placement.groups[r][stage];
      if (std::find(group.begin(), group.end(), device) == group.end()) continue;
      if (r > 0 && s.IsOneCopy(stage)) continue;
      Copy& copy = copies_[{r, stage}];
      copy.state = StateOfCopy(costs, program, {device, r, stage});
      AddStateParts(copy.state.always, &now_);
      buffers |= costs.stages[stage].memory.gradient_buffers;
      constant_ &= copy.state.gathered + copy.state.run_gradients == Bytes(0);
    }
  }
  now_.gradients += BuffersOf(costs, program, buffers);
  if (!HasOwnSteps(s, device)) return;
  versions_.emplace(s, device);
  constant_ = false;
}

void StateWalk::AddOlder(const Action& a, int versions) {
  now_.older_weights += costs_.stages[a.stage].memory.weights * versions;
}

// Begins what travels: hops, gradients and steps.
void StateWalk::BeginHop(const Instruction& i) {
  if (IsWeightGradient(i)) {
    Copy& copy = CopyOf(i);
    if (copy.sum > Bytes(0)) return;
    copy.sum = copy.state.run_gradients;
    now_.gradients += copy.sum;
  } else if (i.op == OpCode::kReceive && program_.messages[i.arg].is_hop()) {
    const CopyState& state = CopyOf(i).state;
    if (program_.messages[i.arg].gradient) {
      now_.gradients += state.hop_gradients;
    } else {
      now_.weights += state.gathered;
    }
  }
}

void StateWalk::EndHop(const Instruction& i) {
  const auto is_sum = [&] {
    const Message& m = program_.messages[i.arg];
    return m.is_hop() && m.gradient;
  };
  if (i.op == OpCode::kRelease) {
    now_.weights -= CopyOf(i).state.gathered;
  } else if (i.op == OpCode::kWait && is_sum()) {
    Copy& copy = CopyOf(i);
    if (copy.sum == Bytes(0)) {
      copy.sum = copy.state.hop_gradients;
    } else {
      now_.gradients -= copy.state.hop_gradients;
    }
  } else if (i.op == OpCode::kStep || (i.op == OpCode::kSend && is_sum())) {
    now_.gradients -= std::exchange(CopyOf(i).sum, Bytes(0));
  }
}

const StateParts& StateWalk::Begin(const Instruction& i) {
  if (constant_) return now_;
  if (program_.schedule.weights_travel) {
    BeginHop(i);
  } else if (i.op == OpCode::kGather) {
    now_.weights += CopyOf(i).state.gathered;
  } else if (IsWeightGradient(i)) {
    Copy& copy = CopyOf(i);
    if (!copy.in_run) now_.gradients += copy.state.run_gradients;
    copy.in_run = true;
  } else if (i.op == OpCode::kStep && versions_.has_value()) {
    AddOlder(i.action, versions_->Next(i.action));
  }
  return now_;
}

const StateParts& StateWalk::End(const Instruction& i) {
  if (constant_) return now_;
  if (program_.schedule.weights_travel) {
    EndHop(i);
  } else if (i.op == OpCode::kRelease) {
    now_.weights -= CopyOf(i).state.gathered;
  } else if (i.op == OpCode::kReduce && program_.reductions[i.arg].scatter) {
    CopyOf(i).in_run = false;
  } else if (i.op == OpCode::kReduceWait && program_.reductions[i.arg].scatter) {
    now_.gradients -= CopyOf(i).state.run_gradients;
  } else if (i.op == OpCode::kCompute && versions_.has_value()) {
    AddOlder(i.action, versions_->Next(i.action));
  }
  return now_;
}

std::vector<Bytes> PeakState(const CostTable& costs, const Program& program) {
  const Schedule& s = program.schedule;
  std::vector<Bytes> peak(s.num_devices());
  if (!ShardsGradients(program.sharding) && !HasOwnSteps(s)) {  // constant
    std::vector<uint64_t> buffers(peak.size());
    for (int r = 0; r < s.placement.num_replicas(); ++r) {
      for (int stage = 0; stage < s.num_stages(); ++stage) {
        for (int d : s.placement.groups[r][stage]) {
          peak[d] += StateOfCopy(costs, program, {d, r, stage}).always.total();
          buffers[d] |= costs.stages[stage].memory.gradient_buffers;
        }
      }
    }
    for (int d = 0; d < s.num_devices(); ++d) peak[d] += BuffersOf(costs, program, buffers[d]);
    return peak;
  }
  for (int d = 0; d < s.num_devices(); ++d) {
    StateWalk walk(costs, program, d);
    peak[d] = walk.now().total();
    for (const Instruction& i : program.instructions[d]) {
      peak[d] = std::max(peak[d], walk.Begin(i).total());
      walk.End(i);
    }
  }
  return peak;
}

}  // namespace pipelab
