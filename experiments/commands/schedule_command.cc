// pipelab schedule: one form of a schedule in, another out.
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "experiments/commands/command.h"
#include "experiments/commands/output.h"
#include "experiments/commands/schedule_input.h"
#include "pipelines/ir/schedule_json.h"
#include "pipelines/ir/text.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, format, "text", "csv, text or json");
ABSL_FLAG(std::string, out, "-", "file of the schedule; -: stdout");

namespace pipelab {
namespace {

absl::StatusOr<std::string> InFormat(const Schedule& schedule, const std::string& format) {
  if (format == "text") return ToText(schedule);
  if (format == "json") return ToJson(schedule);
  if (format == "csv") return ToCsv(schedule);
  return absl::InvalidArgumentError(
      absl::StrCat("--format=", format, ": must be csv, text or json"));
}

}  // namespace

absl::Status ScheduleCommand(const Words& words) {
  PIPELAB_ASSIGN_OR_RETURN(const ScheduleInput input, ReadScheduleInput(words));
  PIPELAB_RETURN_IF_ERROR(CheckInput(input));
  PrintSkippedNote(input);
  const std::string format = absl::GetFlag(FLAGS_format);
  const absl::StatusOr<std::string> text = InFormat(input.schedule, format);
  if (!text.ok()) {
    if (format != "csv") return text.status();
    return absl::InvalidArgumentError(absl::StrCat("--format=csv: ", text.status().message()));
  }
  return WriteOutput("--out", absl::GetFlag(FLAGS_out), *text);
}

}  // namespace pipelab
