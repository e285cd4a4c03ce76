// Costs of the tests that work timelines out by hand, and a timeline as text.
#ifndef PIPELAB_TESTS_SUPPORT_HAND_COSTS_H_
#define PIPELAB_TESTS_SUPPORT_HAND_COSTS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "tests/support/test_schedules.h"

namespace pipelab {

inline Program LowerPlain(Schedule s) { return Lower(std::move(s), {}).value(); }

// A line a device: what takes time, as "0F0[0,100]"; waits as "wait[...]".
inline std::string Timeline(const Program& program, const Trace& trace) {
  std::string text = "\n";
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    for (const ExecutedInstruction& s : SpansOf(program, trace, d)) {
      if (s.end_ns == s.begin_ns) continue;
      const std::string name = s.op == OpCode::kCompute ? ToString(s.action) : OpCodeName(s.op);
      absl::StrAppend(&text, name, "[", s.begin_ns, ",", s.end_ns, "] ");
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

// F 100, I 120, W 80, step 10 ns; edges of 1000 bytes.
inline CostTable HandCosts(const Schedule& s) {
  CostTable costs = CostTable::Unit(s, Nanoseconds(100));
  for (StageCost& stage : costs.stages) {
    stage.backward_input = Nanoseconds(stage.forward.value() * 6 / 5);
    stage.backward_weight = Nanoseconds(stage.forward.value() * 4 / 5);
    stage.step = Nanoseconds(10);
    stage.memory = StageMemory();
  }
  for (Bytes& b : costs.edge_bytes) b = Bytes(1000);
  return costs;
}

inline Schedule TwoSlices(const std::vector<std::string>& lines) {
  Schedule s = ChainOf(1, lines);
  s.num_slices = 2;
  return s;
}

// F 30 and 70, I 40 and 80, W 20 and 30 ns; edges of 300 and 700 bytes.
inline CostTable SliceTable(const Schedule& s) {
  CostTable costs = HandCosts(s);
  for (int slice = 0; slice < 2; ++slice) {
    StageCost stage;
    stage.forward = Nanoseconds(slice == 0 ? 30 : 70);
    stage.backward_input = Nanoseconds(slice == 0 ? 40 : 80);
    stage.backward_weight = Nanoseconds(slice == 0 ? 20 : 30);
    SliceCosts& of_slice = costs.slices.emplace_back();
    of_slice.stages.assign(s.num_stages(), stage);
    of_slice.edge_bytes.assign(s.stages.edges.size(), Bytes(slice == 0 ? 300 : 700));
  }
  return costs;
}

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_HAND_COSTS_H_
