#include "pipelines/step/order_memory.h"

#include <algorithm>

namespace pipelab {

OrderLimits MemoryOfStages(const StageGraph& stages, const CostTable& costs,
                           const std::vector<bool>& recomputed, bool whole) {
  OrderLimits memory;
  const int slices = std::max(1, static_cast<int>(costs.slices.size()));
  for (int part = 0; part < stages.num_stages() * slices; ++part) {
    const int stage = part / slices, slice = part % slices;
    const StageMemory& m = costs.StageOf(stage, slice).memory;
    const bool recomputes = !recomputed.empty() && recomputed[stage];
    Bytes inputs;
    for (int e : stages.in_edges[stage]) inputs += costs.EdgeBytesOf(e, slice);
    const Bytes kept = inputs + (recomputes ? m.kept_when_dropped : m.kept);
    const Bytes rebuilt = inputs + m.kept - kept;
    memory.forward.push_back({inputs + (recomputes ? m.forward_drop_peak : m.forward_peak), kept});
    memory.backward_input.push_back(
        {std::max(recomputes ? m.recompute_peak : Bytes(0),
                  rebuilt + (whole ? m.backward_peak : m.backward_input_peak)),
         (whole ? Bytes(0) : m.kept_for_weight) + m.carried - kept});
    memory.backward_weight.push_back({m.backward_weight_peak, Bytes(0) - m.kept_for_weight});
  }
  return memory;
}

}  // namespace pipelab
