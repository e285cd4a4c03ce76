// A schedule with times, simulated exactly in the user's unit.
//
//   SimulatedTimes times;                    // simulated_costs.h
//   PIPELAB_ASSIGN_OR_RETURN(SimulatedRun run, RunSimulated(schedule, times));
//   RunFigures f = FiguresOf(run);          // f.makespan == f.Units(...)
//
// Errors: those of MakeSimulatedCosts; what Lower says for a schedule that is not valid.
#ifndef PIPELAB_EXPERIMENTS_SIMULATE_SIMULATED_RUN_H_
#define PIPELAB_EXPERIMENTS_SIMULATE_SIMULATED_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "experiments/simulate/simulated_costs.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/ir/trace.h"
#include "pipelines/step/step.h"
#include "tools/base/units.h"

namespace pipelab {

// The times of the flags (time_flags.cc).
SimulatedTimes TimesFromFlags();

struct SimulatedRun {
  StepPrediction prediction;  // with times by hand: program, costs and trace alone
  bool has_model = false;
  int64_t nanoseconds_per_unit = 1;
  std::string unit;        // "ms"; empty: the user's own
  std::string note;        // for people, with a line break
  bool has_bytes = false;  // the trace's memory is in bytes, and not in activations

  const Program& program() const { return prediction.step.program; }
  const CostTable& costs() const { return prediction.step.costs; }
  const Trace& trace() const { return prediction.trace; }
};

absl::StatusOr<SimulatedRun> RunSimulated(Schedule schedule, const SimulatedTimes& times);

struct DeviceFigures {
  double busy = 0;         // units: the sum of its actions, optimizer steps included
  double idle = 0;         // units: the makespan less busy
  double span = 0;         // units: from the begin of its first action to the end of its last
  int peak_in_flight = 0;  // forwards whose B or W is not over, at most
  // Where the run has bytes; else 0. Not at the same time, perhaps.
  Bytes peak_activation, peak_state;
};

struct RunFigures {
  // Units: from the first begin to the last end of an action, step or reduction.
  double makespan = 0;
  double bubble = 0;  // analysis.h: the share of the devices' time without compute, 0 to 1
  std::vector<DeviceFigures> devices;
};

RunFigures FiguresOf(const SimulatedRun& run);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SIMULATE_SIMULATED_RUN_H_
