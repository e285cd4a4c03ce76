#include "pipelines/sim/tensor_traffic.h"

#include <algorithm>
#include <cstdint>

#include "pipelines/cost/sharded_state.h"

namespace pipelab {
namespace {

Bytes TrafficOf(const StageCost::TensorTraffic& stage, ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
    case ActionKind::kRecompute:
      return stage.forward;
    case ActionKind::kBackward:
      return stage.backward_input + stage.backward_weight;
    case ActionKind::kBackwardInput:
      return stage.backward_input;
    case ActionKind::kBackwardWeight:
      return stage.backward_weight;
    case ActionKind::kStep:
      return stage.step;
    case ActionKind::kOffload:
    case ActionKind::kReload:
      break;
  }
  return Bytes(0);
}

}  // namespace

void AddTensorTraffic(const Program& program, const CostTable& costs,
                      const InstructionCostTable& instruction_costs, Trace* trace) {
  const bool context = std::any_of(
      costs.stages.begin(), costs.stages.end(),
      [](const StageCost& stage) { return stage.tensor_traffic.backward_input > Bytes(0); });
  if (costs.tensor_parallel == 1 && !context && costs.exchanges.costs.empty()) return;
  const Schedule& s = program.schedule;
  const int64_t slice_parts = costs.SliceParts(s);
  for (int d = 0; d < s.num_devices(); ++d) {
    Bytes& sent = trace->devices[d].tensor_bytes;
    for (const Instruction& i : program.instructions[d]) {
      const Action& a = i.action;
      if (i.op == OpCode::kStep) {
        const Shard shard = ShardOf(program, {d, i.replica, a.stage});
        if (shard.travels && shard.index < 0) continue;  // it has no gradients to step on
        sent += Bytes(costs.stages[a.stage].tensor_traffic.step.value() /
                      std::max<int64_t>(1, shard.parts * program.devices_per_member));
        continue;
      }
      if (i.op == OpCode::kWait && !program.messages[i.arg].is_hop()) {
        const int64_t bytes = instruction_costs.MessageBytes(program.messages[i.arg]);
        sent += RingTraffic(Bytes(bytes), costs.PartsOfMessage(bytes), /*all_reduce=*/false);
      }
      if (i.op != OpCode::kCompute) continue;
      const StageCost& stage = costs.CostOf(i);
      sent += Bytes(TrafficOf(stage.tensor_traffic, a.kind).value() / slice_parts);
    }
  }
  if (!program.norm.has_value()) return;
  for (const StageCopy& copy : program.norm->members) {
    trace->devices[copy.device].tensor_bytes +=
        RingTraffic(NormBytes(*program.norm), costs.tensor_parallel, /*all_reduce=*/true);
  }
}

void AddStatisticsTraffic(const Program& program, const CostTable& costs, Trace* trace) {
  const bool any = std::any_of(costs.stages.begin(), costs.stages.end(),
                               [](const StageCost& s) { return !s.statistics.forward.empty(); });
  if (!any || program.schedule.forward_only) return;
  const Schedule& s = program.schedule;
  for (int d = 0; d < s.num_devices(); ++d) {
    for (const Instruction& i : program.instructions[d]) {
      if (i.op != OpCode::kCompute) continue;
      const auto members =
          static_cast<int64_t>(s.placement.groups[i.replica][i.action.stage].size());
      for (const TensorCollective& c : costs.StatisticsOf(i.action)) {
        trace->devices[d].collective_bytes +=
            RingTraffic(c.bytes, members, c.kind == Collective::kAllReduce);
      }
    }
  }
}

}  // namespace pipelab
