#include "pipelines/sim/memory_levels.h"

#include <algorithm>

#include "pipelines/sim/effects.h"

namespace pipelab {
namespace {

void Add(std::vector<MemoryPoint>& points, int64_t time, int64_t level) {
  if (points.empty() || points.back().level != Bytes(level)) points.push_back({time, Bytes(level)});
}

}  // namespace

std::vector<std::vector<MemoryPoint>> MemoryLevels(const Program& program, const CostTable& costs,
                                                   const Trace& trace) {
  const EffectTable effects(program, costs);
  std::vector<std::vector<MemoryPoint>> levels(trace.devices.size());
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    int64_t level = 0;
    for (const Span& span : trace.devices[d].spans) {
      const Effect e = effects.Of(static_cast<int>(d), program.instructions[d][span.instruction]);
      if (e.peak == 0 && e.change == 0) continue;
      Add(levels[d], span.begin_ns, std::max(level + e.peak, level));
      level += e.change;
      Add(levels[d], span.end_ns, level);
    }
  }
  return levels;
}

}  // namespace pipelab
