// What tests of the simulator share: a cost table in round numbers, and the ends of everything.
#ifndef PIPELAB_TESTS_SUPPORT_SIM_TESTING_H_
#define PIPELAB_TESTS_SUPPORT_SIM_TESTING_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pipelines/ir/program.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"

namespace pipelab {

// F 100, I 120, W 80, step 10 ns; edges of 1000 bytes.
inline CostTable Costs(const Schedule& s) {
  CostTable costs = CostTable::Unit(s, Nanoseconds(100));
  for (StageCost& stage : costs.stages) {
    stage.backward_input = Nanoseconds(stage.forward.value() * 6 / 5);
    stage.backward_weight = Nanoseconds(stage.forward.value() * 4 / 5);
    stage.step = Nanoseconds(10);
  }
  for (Bytes& b : costs.edge_bytes) b = Bytes(1000);
  return costs;
}

inline Program LowerOrDie(Schedule s, bool step = true) {
  LoweringOptions options;
  options.step = step;
  return Lower(std::move(s), options).value();
}

inline Program Made(const std::string& scheme, int devices, int micro_batches, bool step = false) {
  return LowerOrDie(*MakeSchedule(scheme, {devices, micro_batches}), step);
}

inline int64_t Makespan(const Program& p, const CostTable& costs) {
  return Simulate(p, costs).value().makespan.value();
}

// [device][instruction]
inline std::vector<std::vector<int64_t>> Ends(const Program& p, const CostTable& costs) {
  std::vector<std::vector<int64_t>> ends;
  const Trace trace = Simulate(p, costs).value();
  for (const DeviceTrace& d : trace.devices) {
    std::vector<int64_t>& list = ends.emplace_back();
    for (const Span& s : d.spans) list.push_back(s.end_ns);
  }
  return ends;
}

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_SIM_TESTING_H_
