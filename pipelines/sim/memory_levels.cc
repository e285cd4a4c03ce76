#include "pipelines/sim/memory_levels.h"

#include <algorithm>

#include "pipelines/sim/instruction_cost.h"

namespace pipelab {
namespace {

// Memory of one device as it runs its list.
class MemoryWalk {
 public:
  MemoryWalk(const Program& program, const CostTable& costs,
             const InstructionCostTable& instruction_costs, int device)
      : program_(program),
        instruction_costs_(instruction_costs),
        device_(device),
        state_(costs, program, device) {
    after_.state = state_.now();
  }

  // Runs the next instruction of the list.
  void Run(size_t instruction) {
    const Instruction& i = program_.instructions[device_][instruction];
    const InstructionCost e = instruction_costs_.Of(device_, i);
    during_ = after_;
    during_.state = state_.Begin(i);
    during_.kept += Bytes(e.peak_kept);
    during_.action = Bytes(std::max<int64_t>(e.peak - e.peak_kept, 0));
    after_.state = state_.End(i);
    after_.kept += Bytes(e.kept);
    after_.messages += Bytes(e.change - e.kept);
  }
  const MemoryParts& during() const { return during_; }
  const MemoryParts& after() const { return after_; }

 private:
  const Program& program_;
  const InstructionCostTable& instruction_costs_;
  const int device_;
  StateWalk state_;
  MemoryParts during_, after_;
};

bool Same(const StateParts& a, const StateParts& b) {
  return a.weights == b.weights && a.gradients == b.gradients && a.optimizer == b.optimizer &&
         a.statistics == b.statistics && a.older_weights == b.older_weights;
}

void Add(std::vector<MemoryPoint>& points, int64_t time, const MemoryParts& parts) {
  if (!points.empty()) {
    const MemoryParts& last = points.back().parts;
    if (last.kept == parts.kept && last.messages == parts.messages && last.action == parts.action &&
        Same(last.state, parts.state)) {
      return;
    }
  }
  points.push_back({time, parts});
}

MemoryPeak PeakOf(const Program& program, const CostTable& costs,
                  const InstructionCostTable& instruction_costs, int device) {
  MemoryWalk walk(program, costs, instruction_costs, device);
  MemoryPeak peak{-1, walk.after()};
  Bytes most = program.instructions[device].empty() ? peak.parts.total() : Bytes(-1);
  for (size_t n = 0; n < program.instructions[device].size(); ++n) {
    walk.Run(n);
    // The second of two equal ones is taken: its parts are finer.
    for (const MemoryParts* parts : {&walk.after(), &walk.during()}) {
      if (parts->total() <= most) continue;
      most = parts->total();
      peak = {static_cast<int32_t>(n), *parts};
    }
  }
  return peak;
}

}  // namespace

std::vector<std::vector<MemoryPoint>> MemoryLevels(const Program& program, const CostTable& costs,
                                                   const Trace& trace) {
  const InstructionCostTable instruction_costs(program, costs);
  std::vector<std::vector<MemoryPoint>> levels(trace.devices.size());
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    MemoryWalk walk(program, costs, instruction_costs, static_cast<int>(d));
    for (const ExecutedInstruction& span : SpansOf(program, trace, d)) {
      walk.Run(span.instruction);
      Add(levels[d], span.begin_ns, walk.during());
      Add(levels[d], span.end_ns, walk.after());
    }
  }
  return levels;
}

MemoryPeak PeakMemory(const Program& program, const CostTable& costs, int device) {
  return PeakOf(program, costs, InstructionCostTable(program, costs), device);
}

std::vector<MemoryPeak> PeakMemory(const Program& program, const CostTable& costs) {
  const InstructionCostTable instruction_costs(program, costs);
  std::vector<MemoryPeak> peaks;
  for (int d = 0; d < program.schedule.num_devices(); ++d) {
    peaks.push_back(PeakOf(program, costs, instruction_costs, d));
  }
  return peaks;
}

}  // namespace pipelab
