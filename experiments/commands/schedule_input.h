// The schedule that a command is about: a scheme's name with its sizes, or a file.
//
//   PIPELAB_ASSIGN_OR_RETURN(ScheduleInput input, ReadScheduleInput(words));
//   PIPELAB_RETURN_IF_ERROR(CheckInput(input));       // the file's schedule is valid
//
// Flags: --devices, --micro_batches, --virtual_stages, --recompute, --group_size, --replicas,
// --concatenation, --update_interval for a scheme; --csv, --json or --text for a
// file, "-" being stdin. Errors: InvalidArgument when the request makes no sense;
// FailedPrecondition naming the file, the place and the reason when its content does not.
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_SCHEDULE_INPUT_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_SCHEDULE_INPUT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/ir/text.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

enum class InputKind { kScheme, kCsv, kJson, kText };

struct ScheduleInput {
  InputKind kind = InputKind::kScheme;
  std::string source;  // "1f1b", "--csv=mine.csv": what messages name
  Schedule schedule;   // of a file: well formed, not yet valid
  // What the schedule is of; of a file, and of a graph of stages, its grid alone.
  StepConfig config;
  bool own = false;    // the configuration does not say the schedule
  CsvSkipped skipped;  // cells of a CSV that only PyTorch's runtime needs
};

// `words`: the command, and a scheme's name unless a file is given. `takes_scheme` is false for
// commands that are about files only.
absl::StatusOr<ScheduleInput> ReadScheduleInput(const std::vector<std::string>& words,
                                                bool takes_scheme = true);

// "27 cells of messages (15), ... left out: pipelab adds its own", or nothing.
std::string SkippedNote(const ScheduleInput& input);
// The note as a line on stderr.
void PrintSkippedNote(const ScheduleInput& input);

// FailedPrecondition with the validator's reason.
absl::Status CheckInput(const ScheduleInput& input);

// As "text", "json" or "csv"; InvalidArgument that names --format, or what CSV cannot say.
absl::StatusOr<std::string> InFormat(const Schedule& schedule, absl::string_view format);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_SCHEDULE_INPUT_H_
