#include "pipelines/sim/effects.h"

namespace pipelab {

EffectTable::EffectTable(const Schedule& s, const CostTable& costs) : num_stages_(s.num_stages()) {
  const std::vector<bool> recomputed = s.RecomputedStages();
  for (int r = 0; r < s.placement.num_replicas(); ++r) {
    for (int stage = 0; stage < num_stages_; ++stage) {
      const int64_t parts =
          static_cast<int64_t>(s.placement.groups[r][stage].size()) * s.num_slices;
      table_.push_back(Effects(s, costs, stage, recomputed[stage], parts));
    }
  }
}

EffectTable::StageEffects EffectTable::Effects(const Schedule& s, const CostTable& costs, int stage,
                                               bool recomputed, int64_t parts) {
  const StageMemory& m = costs.stages[stage].memory;
  int64_t in = 0, out = 0;
  for (int e : s.stages.in_edges[stage]) in += costs.edge_bytes[e].value() / parts;
  for (int e : s.stages.out_edges[stage]) out += costs.edge_bytes[e].value() / parts;
  const int64_t kept = m.kept.value() / parts;
  const int64_t for_weight = m.kept_for_weight.value() / parts;
  StageEffects effects;
  const auto set = [&](ActionKind kind, Bytes peak, int64_t change) {
    Action a;
    a.kind = kind;
    a.stage = static_cast<int16_t>(stage);
    effects[static_cast<int>(kind)] = {costs.Compute(a).value() / parts, peak.value() / parts,
                                       change};
  };
  // `in` of a forward is on the device already (received, or handed over); a backward turns inputs
  // and output gradients into input gradients.
  set(ActionKind::kForward, recomputed ? m.forward_drop_peak : m.forward_peak,
      out + (recomputed ? 0 : kept));
  set(ActionKind::kRecompute, m.recompute_peak, kept);
  set(ActionKind::kBackward, m.backward_peak, in - (kept + in + out));
  set(ActionKind::kBackwardInput, m.backward_input_peak, in + for_weight - (kept + in + out));
  set(ActionKind::kBackwardWeight, m.backward_weight_peak, -for_weight);
  effects[static_cast<int>(ActionKind::kStep)].time = costs.stages[stage].step.value();
  return effects;
}

}  // namespace pipelab
