#include "experiments/simulate/simulated_run.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "glog/logging.h"
#include "pipelines/analysis/analysis.h"
#include "pipelines/ir/atomic_pairs.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

bool IsWork(const Span& s) { return s.op == OpCode::kCompute || s.op == OpCode::kStep; }

}  // namespace

absl::StatusOr<SimulatedRun> RunSimulated(Schedule schedule, const SimulatedTimes& times) {
  SimulatedRun run;
  LoweringOptions lowering;
  lowering.step = times.has_step();
  Program& program = run.prediction.step.program;
  PIPELAB_ASSIGN_OR_RETURN(program, Lower(std::move(schedule), lowering));
  PIPELAB_ASSIGN_OR_RETURN(SimulatedCosts paper, MakeSimulatedCosts(program, times));
  if (times.atomic_pairs) PairForwardBackward(&program);
  PIPELAB_ASSIGN_OR_RETURN(run.prediction.trace, Simulate(program, paper.costs));
  run.prediction.step.costs = std::move(paper.costs);
  run.nanoseconds_per_unit = paper.nanoseconds_per_unit;
  run.has_bytes = times.has_bytes();
  return run;
}

RunFigures FiguresOf(const SimulatedRun& run) {
  // Whole nanoseconds to the end, then one division: 33 tenths are 3.3.
  const auto units = [&](int64_t ns) {
    return static_cast<double>(ns) / static_cast<double>(run.nanoseconds_per_unit);
  };
  int64_t begin = std::numeric_limits<int64_t>::max(), end = std::numeric_limits<int64_t>::min();
  for (const DeviceTrace& d : run.trace().devices) {
    for (const Span& s : d.spans) {
      if (!IsWork(s) && !IsCollective(s.op)) continue;
      begin = std::min(begin, s.begin_ns);
      end = std::max(end, s.end_ns);
    }
  }
  const int64_t makespan = std::max<int64_t>(0, end - begin);
  RunFigures figures;
  figures.makespan = units(makespan);
  for (const DeviceTrace& d : run.trace().devices) {
    int64_t busy = 0, first = -1, last = 0;
    for (const Span& s : d.spans) {
      if (!IsWork(s)) continue;
      busy += s.end_ns - s.begin_ns;
      if (first < 0) first = s.begin_ns;
      last = s.end_ns;
    }
    DeviceFigures& device = figures.devices.emplace_back();
    device.busy = units(busy);
    device.idle = units(makespan - busy);
    device.span = first < 0 ? 0 : units(last - first);
    for (const InFlightPoint& p : InFlight(d)) {
      device.peak_in_flight = std::max(device.peak_in_flight, p.count);
    }
    if (run.has_bytes) {
      device.peak_activation = d.peak_activation;
      device.peak_state = d.peak_state;
    }
  }
  const absl::StatusOr<TraceAnalysis> analysis = Analyze(run.trace());
  CHECK(analysis.ok()) << analysis.status();  // the simulator's traces are valid
  figures.bubble = analysis->overall.bubble;
  return figures;
}

}  // namespace pipelab
