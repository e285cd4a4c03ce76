// The times that the options of simulate and show give, as a cost table.
//
//   SimulatedTimes times;                    // F = I = W = 1; a fused backward costs I + W
//   times.hop = "0.1";
//   PIPELAB_ASSIGN_OR_RETURN(SimulatedCosts paper, MakeSimulatedCosts(program, times));
//   Simulate(program, paper.costs);
//
// Times are decimals in a unit of the user's choice, one for all stages ("1.5") or one per stage,
// separated by commas ("1,2,1"). Internally they are whole nanoseconds. A unit is the smallest
// power of ten with which every time is whole, times the token slices of a micro-batch and a
// multiple of the sizes of device groups, since slices and members take equal shares of a stage's
// time. Times that follow from bytes, links or speeds are rounded to the nanosecond; a unit then
// has at least 10^6 of them, and so it has if the groups have no small common multiple.
//
// Errors: InvalidArgument naming the option and the value; FailedPrecondition for what the file of
// --links says.
#ifndef PIPELAB_EXPERIMENTS_SIMULATE_SIMULATED_COSTS_H_
#define PIPELAB_EXPERIMENTS_SIMULATE_SIMULATED_COSTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "experiments/simulate/simulated_memory.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"

namespace pipelab {

// Each a flag of the same name.
struct SimulatedTimes {
  std::string forward = "1", backward_input = "1", backward_weight = "1", hop = "0";
  std::string recompute_time;  // empty: the forward's
  std::string step, reduce;    // empty: no steps, no reductions
  std::string bytes;           // of a message; empty: none
  std::string bandwidth;       // bytes in a unit of time; empty: no limit
  std::string links;           // a file (links_file.h)
  std::string device_speed;    // one or one per device; empty: 1
  SimulatedMemory memory;
  bool overlap = true;
  bool atomic_pairs = false;  // pipelines/ir/atomic_pairs.h
  // A unit has at least 10^this nanoseconds: 6 lets drawings show it as 1 ms.
  int least_decimals = 0;

  // Whether optimizer steps and gradient reductions are part of the run.
  bool has_step() const { return !step.empty() || !reduce.empty(); }
  // Whether memory is in bytes, and not in stage activations.
  bool has_bytes() const { return !bytes.empty() || memory.any(); }
};

struct SimulatedCosts {
  CostTable costs;
  int64_t nanoseconds_per_unit = 1;
};

absl::StatusOr<SimulatedCosts> MakeSimulatedCosts(const Program& program,
                                                  const SimulatedTimes& times);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SIMULATE_SIMULATED_COSTS_H_
