// The simulated run that simulate and show are about: of a schedule, or of a plan (--plan).
//
//   PIPELAB_ASSIGN_OR_RETURN(const NamedRun named, ReadNamedRun(words, /*least_decimals=*/0));
//   FiguresOf(named.run)
//
// Errors: those of ReadScheduleInput, CheckInput, ReadPlanInput and RunFromFlags.
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_NAMED_RUN_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_NAMED_RUN_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "experiments/commands/command.h"
#include "experiments/simulate/simulated_run.h"
#include "pipelines/ir/text.h"

namespace pipelab {

struct NamedRun {
  std::string source;  // "1f1b", "--csv=mine.csv": what messages name
  std::string name;    // of the schedule
  CsvSkipped skipped;
  SimulatedRun run;

  // For drawings; 0: times are those of a model.
  int64_t own_unit() const { return run.unit.empty() ? run.nanoseconds_per_unit : 0; }
};

// `least_decimals`: SimulatedTimes::least_decimals; drawings need 6. A schedule of more than
// `most_actions` is refused before it is simulated.
absl::StatusOr<NamedRun> ReadNamedRun(const Words& words, int least_decimals,
                                      int64_t most_actions = std::numeric_limits<int64_t>::max());

// What `simulate --json_out` writes, with the flags of simulate alone.
absl::StatusOr<std::string> SimulatedJson(const NamedRun& named);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_NAMED_RUN_H_
