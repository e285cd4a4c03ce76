// The user's own schedule instead of a scheme's name: "mine.csv" (PyTorch's form), "mine.json" or
// "mine.txt" (ir/text.h).
//
//   PIPELAB_ASSIGN_OR_RETURN(Schedule s, ReadScheduleFile(&config));   // config.scheme is the file
//
// P, V and M come from the file; if the configuration gives them, they must agree. With recompute,
// backwards of the file rebuild their activations first.
#ifndef PIPELAB_PIPELINES_STEP_SCHEDULE_FILE_H_
#define PIPELAB_PIPELINES_STEP_SCHEDULE_FILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/ir/text.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

// Reads a file's text, in the form that its name or option ends with: csv, json, else ir/text.h.
// `name` is what messages of JSON name; `skipped` may be null.
absl::StatusOr<Schedule> ParseScheduleFile(absl::string_view ending, absl::string_view text,
                                           absl::string_view name, CsvSkipped* skipped);

// FailedPrecondition naming the file, the place and the reason for what is wrong in it;
// InvalidArgument where the configuration says otherwise. The configuration gets the file's P, V
// and M.
absl::StatusOr<Schedule> ReadScheduleFile(StepConfig* config);

// The schedule with each device replaced by so many that share its micro-batches by rows.
Schedule WithCopies(Schedule schedule, int copies);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_SCHEDULE_FILE_H_
