#include "pipelines/step/schedule_file.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "pipelines/ir/schedule_json.h"
#include "pipelines/ir/validate.h"
#include "pipelines/schedules/schemes.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::StatusOr<Schedule> Read(const std::string& path) {
  absl::StatusOr<std::string> text = ReadTextFile(ResolveOutputPath(path, ""));
  absl::Status status = text.status();
  if (text.ok()) {
    absl::StatusOr<Schedule> schedule = ParseScheduleFile(path, *text, path, nullptr);
    status = schedule.status();
    if (schedule.ok()) status = Validate(*schedule);
    if (status.ok()) return schedule;
  }
  const bool named = absl::StartsWith(status.message(), path);
  return absl::FailedPreconditionError(named ? std::string(status.message())
                                             : absl::StrCat(path, ": ", status.message()));
}

absl::Status Differs(const StepConfig& c, absl::string_view key, int64_t given, int64_t own) {
  return absl::InvalidArgumentError(absl::StrCat(key, "=", given, ": the schedule in ", c.scheme,
                                                 " has ", own, "; leave ", key, " out"));
}

absl::Status TakeSizes(const Schedule& s, StepConfig* config) {
  StepConfig& c = *config;
  if (c.pipeline != 1 && c.pipeline != s.num_devices()) {
    return Differs(c, "P", c.pipeline, s.num_devices());
  }
  if (c.micro_batches != 1 && c.micro_batches != s.num_micro_batches) {
    return Differs(c, "M", c.micro_batches, s.num_micro_batches);
  }
  const int virtual_stages = VirtualStagesOf(s);
  if (c.virtual_stages != 0 && c.virtual_stages != virtual_stages) {
    return Differs(c, "V", c.virtual_stages, virtual_stages);
  }
  c.pipeline = s.num_devices();
  c.micro_batches = s.num_micro_batches;
  c.virtual_stages = virtual_stages;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Schedule> ParseScheduleFile(absl::string_view ending, absl::string_view text,
                                           absl::string_view name, CsvSkipped* skipped) {
  if (absl::EndsWith(ending, "csv")) return ParseCsv(text, skipped);
  if (absl::EndsWith(ending, "json")) return ScheduleFromJson(text, name);
  return ParseSchedule(text);
}

absl::StatusOr<Schedule> ReadScheduleFile(StepConfig* config) {
  PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, Read(config->scheme));
  PIPELAB_RETURN_IF_ERROR(TakeSizes(schedule, config));
  if (config->recompute == Recompute::kFull) InsertRecompute(&schedule);
  return schedule;
}

Schedule WithCopies(Schedule schedule, int copies) {
  ReplaceDevicesByGroups(copies, &schedule);
  return schedule;
}

}  // namespace pipelab
