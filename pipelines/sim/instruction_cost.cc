#include "pipelines/sim/instruction_cost.h"

#include <algorithm>

#include "pipelines/cost/collectives.h"
#include "pipelines/cost/sharded_state.h"
#include "pipelines/ir/row_split.h"

namespace pipelab {

InstructionCostTable::InstructionCostTable(const Program& program, const CostTable& costs)
    : program_(program),
      costs_(costs),
      num_stages_(program.schedule.num_stages()),
      num_slices_(costs.slices.empty() ? 1 : program.schedule.NumShapes()),
      slice_parts_(costs.SliceParts(program.schedule)),
      reshard_(program.schedule, costs),
      flows_(program.schedule) {
  const Schedule& s = program.schedule;
  num_edges_ = s.stages.edges.size();
  for (int e = 0; e < static_cast<int>(num_edges_); ++e) {
    const PassMap& outputs = flows_.Along(e, /*gradient=*/false);
    late_ |= outputs.HasUnequalPasses() || outputs.reads().list() ||
             flows_.Along(e, /*gradient=*/true).reads().late();
  }
  slices_differ_ = !costs.slices.empty();
  for (int slice = 0; slice < num_slices_; ++slice) {
    for (size_t e = 0; e < num_edges_; ++e) {
      message_bytes_.push_back(costs.EdgeBytesOf(static_cast<int>(e), slice).value() *
                               MessageSize(s, s.stages.edges[e]));
    }
  }
  for (int stage = 0; s.weights_travel && stage < num_stages_; ++stage) {
    for (bool gradient : {false, true}) {
      hop_bytes_.push_back(HopBytes(costs.stages[stage].memory, gradient).value());
    }
  }
  if (program.norm.has_value()) {
    norm_bytes_.resize(s.num_devices());
    for (const StageCopy& m : program.norm->members) {
      norm_bytes_[m.device] += NormBytes(*program.norm).value();
    }
  }
  // As much as a forward that recomputes leaves, an inference's does while it runs.
  std::vector<bool> recomputed = s.RecomputedStages();
  for (int stage = 0; stage < num_stages_; ++stage) {
    if (s.HasForwardsAlone(stage)) recomputed[stage] = true;
  }
  for (int r = 0; r < s.placement.num_replicas(); ++r) {
    for (int stage = 0; stage < num_stages_; ++stage) {
      const std::vector<int>& group = s.placement.groups[r][stage];
      for (int slice = 0; slice < num_slices_; ++slice) {
        table_.push_back(
            CostsOfStage(costs.StageOf(stage, slice), stage, slice, recomputed[stage], group));
      }
    }
  }
  // The first pass of those with one cost says the stage.
  exchanges_.resize(costs.exchanges.costs.size());
  for (size_t i = costs.exchanges.of_pass.size(); i-- > 0;) {
    const Action& a = program.exchanges[i].action;
    const int32_t cost = costs.exchanges.of_pass[i];
    exchanges_[cost] = CostsOfStage(costs.exchanges.costs[cost], a.stage, a.slice,
                                    recomputed[a.stage], s.placement.groups[0][a.stage]);
  }
}

InstructionCost InstructionCostTable::WithReshard(InstructionCost cost, int device,
                                                  const Instruction& i) const {
  const ReshardMemory parts = reshard_.Of(device, i.replica, i.action);
  cost.peak = std::max({cost.peak, parts.before, cost.change + parts.after});
  return cost;
}

// Zeros stand for late gradients that there are not yet, and those that come too late to be taken
// are dropped. A forward takes a copy of what is read again, and drops what nobody reads. What goes
// to other micro-batches is taken in some passes and made in some.
InstructionCost InstructionCostTable::WithFlows(InstructionCost cost, const Instruction& i) const {
  const Action& a = i.action;
  const StageGraph& graph = program_.schedule.stages;
  const auto members =
      static_cast<int64_t>(program_.schedule.placement.groups[i.replica][a.stage].size());
  const auto bytes = [&](int edge, int pass) {
    const int shape = num_slices_ > 1 ? program_.schedule.ShapeOf(pass, a.slice) : 0;
    return costs_.EdgeBytesOf(edge, shape).value() / (members * slice_parts_);
  };
  const auto add = [&cost](int64_t more) {
    cost.peak += more;
    cost.change += more;
  };
  const int pass = a.micro_batch;
  if (a.kind == ActionKind::kForward) {
    for (int e : graph.in_edges[a.stage]) {
      const PassMap& outputs = flows_.Along(e, /*gradient=*/false);
      if (!outputs.IsLastRead(pass)) add(bytes(e, pass));
      if (!outputs.reads().list()) continue;
      for (int source : outputs.Sources(pass)) cost.change -= bytes(e, source);
    }
    for (int e : graph.out_edges[a.stage]) {
      const PassMap& outputs = flows_.Along(e, /*gradient=*/false);
      const bool taken = !outputs.Readers(pass).empty();
      if (!outputs.reads().list()) {
        cost.change -= taken ? 0 : bytes(e, pass);
      } else if (taken) {
        add(bytes(e, pass));
      }
    }
  }
  if (a.kind != ActionKind::kBackward && a.kind != ActionKind::kBackwardInput) return cost;
  for (int e : graph.out_edges[a.stage]) {
    const PassMap& gradients = flows_.Along(e, /*gradient=*/true);
    if (gradients.reads().late() && gradients.Sources(pass).empty()) add(bytes(e, pass));
  }
  for (int e : graph.in_edges[a.stage]) {
    const PassMap& gradients = flows_.Along(e, /*gradient=*/true);
    if (!gradients.reads().late() || !gradients.Readers(pass).empty()) continue;
    cost.change -= bytes(e, pass);
  }
  return cost;
}

int64_t InstructionCostTable::StatisticsTime(const Action& a, const std::vector<int>& group) const {
  int64_t time = 0;
  if (program_.schedule.forward_only) return time;  // running ones serve
  for (const TensorCollective& c : costs_.StatisticsOf(a)) {
    time += CollectiveTime(costs_, c.kind, group, c.bytes).value();
  }
  return time;
}

InstructionCostTable::StageInstructionCosts InstructionCostTable::CostsOfStage(
    const StageCost& cost, int stage, int slice, bool recomputed,
    const std::vector<int>& group) const {
  const Schedule& s = program_.schedule;
  const StageMemory& m = cost.memory;
  int64_t in = 0, out = 0;            // activations
  int64_t in_back = 0, out_back = 0;  // gradients
  const int64_t size = s.MicroBatchSize(stage);
  const int64_t parts = static_cast<int64_t>(group.size()) * slice_parts_;
  for (int e : s.stages.in_edges[stage]) {
    if (s.stages.edges[e].output.list()) continue;
    const int64_t bytes = costs_.EdgeBytesOf(e, slice).value() * size / parts;
    in += bytes;
    if (!s.stages.edges[e].gradient.none()) in_back += bytes;
  }
  for (int e : s.stages.out_edges[stage]) {
    if (s.stages.edges[e].output.list()) continue;
    const int64_t bytes = costs_.EdgeBytesOf(e, slice).value() * size / parts;
    out += bytes;
    if (!s.stages.edges[e].gradient.none()) out_back += bytes;
  }
  // These are bytes of the device's own rows already (cost_table.h); token slices may be alike.
  const auto own = [this](Bytes bytes) { return bytes.value() / slice_parts_; };
  const int64_t kept = own(m.kept), for_weight = own(m.kept_for_weight);
  const int64_t dropped = own(m.kept_when_dropped), carried = own(m.carried);
  StageInstructionCosts instruction_costs;
  const auto set = [&](ActionKind kind, Bytes peak, int64_t kept, int64_t messages) {
    Action a;
    a.kind = kind;
    a.stage = static_cast<int16_t>(stage);
    if (costs_.of_passes) {
      a.micro_batch = slice;
    } else {
      a.slice = static_cast<int16_t>(slice);
    }
    const int64_t time = costs_.Compute(a, cost).value() / slice_parts_ + StatisticsTime(a, group);
    instruction_costs[static_cast<int>(kind)] = {time, own(peak), kept + messages, 0, kept};
  };
  // `in` of a forward is on the device already (received, or handed over) and is then kept; a
  // backward turns what was kept and output gradients into input gradients.
  set(ActionKind::kForward, recomputed ? m.forward_drop_peak : m.forward_peak,
      s.HasForwardsAlone(stage) ? 0 : in + (recomputed ? dropped : kept), out - in);
  set(ActionKind::kRecompute, m.recompute_peak, kept - dropped, 0);
  set(ActionKind::kBackward, m.backward_peak, carried - (kept + in), in_back - out_back);
  set(ActionKind::kBackwardInput, m.backward_input_peak, for_weight + carried - (kept + in),
      in_back - out_back);
  set(ActionKind::kBackwardWeight, m.backward_weight_peak, -for_weight, 0);
  const int64_t moved = in + kept - dropped;
  instruction_costs[static_cast<int>(ActionKind::kOffload)] = {0, 0, -moved, 0, -moved};
  instruction_costs[static_cast<int>(ActionKind::kReload)] = {0, 0, moved, 0, moved};
  if (!recomputed) {
    instruction_costs[static_cast<int>(ActionKind::kForward)].peak_kept = own(m.forward_peak_kept);
  }
  instruction_costs[static_cast<int>(ActionKind::kRecompute)].peak_kept =
      own(m.recompute_peak_kept);
  instruction_costs[static_cast<int>(ActionKind::kStep)].time = costs_.stages[stage].step.value();
  return instruction_costs;
}

}  // namespace pipelab
