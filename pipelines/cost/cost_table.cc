#include "pipelines/cost/cost_table.h"

#include "glog/logging.h"

namespace pipelab {

Nanoseconds CostTable::Compute(const Action& action) const {
  return Compute(action, StageOf(action.stage, ShapeOf(action)));
}

Nanoseconds CostTable::Compute(const Action& action, const StageCost& cost) const {
  switch (action.kind) {
    case ActionKind::kForward:
      return cost.forward;
    case ActionKind::kBackward:
      return cost.backward_input + cost.backward_weight;
    case ActionKind::kBackwardInput:
      return cost.backward_input;
    case ActionKind::kBackwardWeight:
      return cost.backward_weight;
    case ActionKind::kRecompute:
      return cost.recompute;
    case ActionKind::kStep:
      return stages[action.stage].step;
    case ActionKind::kOffload:
    case ActionKind::kReload:
      return Nanoseconds(0);  // of the device
  }
  LOG(FATAL) << "no such action kind: " << static_cast<int>(action.kind);
}

const std::vector<TensorCollective>& CostTable::StatisticsOf(const Action& action) const {
  static const std::vector<TensorCollective>* const none = new std::vector<TensorCollective>;
  const TensorCollectives& of_stage = StageOf(action.stage, ShapeOf(action)).statistics;
  switch (action.kind) {
    case ActionKind::kForward:
    case ActionKind::kRecompute:
      return of_stage.forward;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
      return of_stage.backward_input;
    default:
      return *none;
  }
}

PathCost CostTable::PathBetween(int from, int to) const {
  if (network.empty()) return {hop_latency, bandwidth};
  return CostOfPath(network, from, to);
}

Bytes CostTable::ReductionBytes(const Reduction& reduction) const {
  if (reduction.members.empty()) return Bytes(0);
  if (reduction.parameter.empty()) return stages[reduction.members[0].stage].memory.gradients;
  const auto it = tie_bytes.find(reduction.parameter);
  return it == tie_bytes.end() ? Bytes(0) : it->second;
}

Bytes CostTable::GradientBuffers(uint64_t buffers) const {
  Bytes bytes;
  for (size_t b = 0; b < gradient_buffers.size(); ++b) {
    if ((buffers >> b & 1) != 0) bytes += gradient_buffers[b];
  }
  return bytes;
}

CostTable CostTable::Unit(const Schedule& schedule, Nanoseconds unit) {
  StageCost cost;
  cost.forward = cost.backward_input = cost.backward_weight = cost.recompute = unit;
  const Bytes activation(schedule.num_slices);
  StageMemory& m = cost.memory;
  m.kept = m.kept_for_weight = activation;
  if (schedule.forward_only) m.forward_drop_peak = activation;
  m.forward_peak = m.recompute_peak = m.forward_peak_kept = m.recompute_peak_kept = activation;
  CostTable table;
  table.stages.assign(schedule.num_stages(), cost);
  for (int stage = 0; stage < schedule.num_stages(); ++stage) {
    const int size = schedule.MicroBatchSize(stage), group = schedule.GroupSize(stage);
    if (size == 1 && group == 1) continue;
    StageCost& c = table.stages[stage];
    c.forward = c.backward_input = c.backward_weight = c.recompute =
        Nanoseconds(unit.value() * size / group);
    for (Bytes* bytes : c.memory.Activations()) *bytes = *bytes * size;
  }
  table.edge_bytes.assign(schedule.stages.edges.size(), Bytes(0));
  return table;
}

}  // namespace pipelab
