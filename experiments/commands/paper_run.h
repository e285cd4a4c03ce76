// A schedule with times, on paper: the simulator in the user's unit, exactly.
//
//   PaperTimes times;                    // F = I = W = 1; a fused backward costs I + W
//   times.hop = "0.1";
//   PIPELAB_ASSIGN_OR_RETURN(PaperRun run, RunOnPaper(schedule, times));
//   Figures f = FiguresOf(run);          // f.makespan == f.Units(...)
//
// Times are decimals in a unit of the user's choice, one for all stages ("1.5") or one a stage,
// separated by commas ("1,2,1"). Inside they are whole nanoseconds: a unit is the smallest power of
// ten of them that makes every time whole. A recompute costs its stage's forward. Messages take
// `hop`, whatever their size; nothing else takes time.
//
// Errors: InvalidArgument naming the option and the value; what Lower says for a schedule that is
// not valid.
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_PAPER_RUN_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_PAPER_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

struct PaperTimes {
  std::string forward = "1", backward_input = "1", backward_weight = "1", hop = "0";
  bool atomic_pairs = false;  // pipelines/sim/atomic_pairs.h
  // A unit has at least 10^this nanoseconds: 6 lets drawings show it as 1 ms.
  int least_decimals = 0;
};

// Of the flags --forward, --backward_input, --backward_weight, --hop and --atomic_pairs.
PaperTimes TimesFromFlags();

struct PaperRun {
  Program program;
  Trace trace;
  int64_t nanoseconds_per_unit = 1;
};

absl::StatusOr<PaperRun> RunOnPaper(Schedule schedule, const PaperTimes& times);

struct DeviceFigures {
  double busy = 0;         // units: the sum of its actions
  double idle = 0;         // units: the makespan less busy
  double span = 0;         // units: from the begin of its first action to the end of its last
  int peak_in_flight = 0;  // forwards whose B or W is not over, at most
};

struct Figures {
  double makespan = 0;  // units: from the first begin to the last end of an action
  double bubble = 0;    // idle of all devices / (devices * makespan), 0 to 1
  std::vector<DeviceFigures> devices;
};

Figures FiguresOf(const PaperRun& run);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_PAPER_RUN_H_
