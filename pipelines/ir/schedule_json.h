// Schedules as JSON, for programs that drive pipelab and for schedules that other systems make.
//
//   std::string text = ToJson(schedule);
//   PIPELAB_ASSIGN_OR_RETURN(Schedule s, ScheduleFromJson(text, "--json=a.json"));
//   ToJson(s) == text
//
//   {"scheme": "1f1b", "devices": 2, "micro_batches": 1, "chunks": 1,
//    "stage_to_device": [[0, 1]],                 a list a replica
//    "order": [[["F", 0, 0, 0], ["B", 0, 0, 0]],  a list a device of
//              [["F", 1, 0, 0], ["B", 1, 0, 0]]]}  [kind, stage, micro_batch, replica]
//
// Kinds are the letters of schedule.h (F, B, I, W, R, S, O, L). What most schedules lack is written
// only where it is needed: "edges" ([[0, 1], ...], a stage graph that is no chain), "carried" ([-1,
// -1, 0, 1], whose output each micro-batch takes along edges [1, 0, "carries"]),
// "stage_micro_batches" ([8, 4, 8], micro-batches of each stage where they differ: an action's are
// its stage's own, "micro_batches" is the largest number), "slices" (token slices of a
// micro-batch), a fifth and a sixth member of an action (slice, weight version), and a list of
// devices in the place of one (a group that shares a stage).
//
// Only "order" must be there when reading. "stage_to_device" may be one flat list (one replica) or
// be missing: then it follows from where actions stand. An action may leave out its replica: then
// it is that of its micro-batch, or the one whose devices fit; without "stage_to_device", stages of
// different micro-batches are of one replica. "chunks" says nothing that the
// placement does not, and is not used. Unknown keys are refused by name.
//
// A schedule that is read is well formed, not yet valid: Validate it. Errors are InvalidArgument,
// one line that begins with `what` and names the field. No text makes the reader allocate more than
// a small multiple of its length.
#ifndef PIPELAB_PIPELINES_IR_SCHEDULE_JSON_H_
#define PIPELAB_PIPELINES_IR_SCHEDULE_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

std::string ToJson(const Schedule& schedule);
absl::StatusOr<Schedule> ScheduleFromJson(absl::string_view text, absl::string_view what);

// The most stages that a device holds of one replica: "chunks".
int VirtualStagesOf(const Schedule& schedule);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_SCHEDULE_JSON_H_
