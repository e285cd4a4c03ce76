#include "experiments/simulate/simulated_run.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"
#include "pipelines/analysis/analysis.h"
#include "pipelines/ir/atomic_pairs.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

bool IsWork(const Instruction& i) { return i.op == OpCode::kCompute || i.op == OpCode::kStep; }

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
  const Trace& trace = run.trace();
  const absl::StatusOr<TraceAnalysis> analysis = Analyze(run.program(), trace);
  CHECK(analysis.ok()) << analysis.status();  // the simulator's traces are valid
  TimeExtent step;
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    step += ExtentOf(SpansOf(run.program(), trace, d),
                     [](const Instruction& i) { return IsWork(i) || IsCollective(i.op); });
  }
  RunFigures figures;
  figures.makespan = units(step.length());
  figures.bubble = analysis->overall.bubble;
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const Breakdown& wall = analysis->devices[d].wall;
    const int64_t busy = (wall.compute + wall.optimizer).value();
    DeviceFigures& device = figures.devices.emplace_back();
    device.busy = units(busy);
    device.idle = units(step.length() - busy);
    device.span = units(ExtentOf(SpansOf(run.program(), trace, d), IsWork).length());
    device.peak_in_flight = analysis->devices[d].peak_in_flight;
    if (run.has_bytes) {
      device.peak_activation = trace.devices[d].peak_activation;
      device.peak_state = trace.devices[d].peak_state;
    }
  }
  return figures;
}

}  // namespace pipelab
