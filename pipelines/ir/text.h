// Schedules as text, to read, write by hand, keep in files and compare.
//
//   std::string text = ToText(schedule);
//   PIPELAB_ASSIGN_OR_RETURN(Schedule s, ParseSchedule(text));   // ToText(s) == text
//
// The text form holds everything, in this order (lines that begin with # and empty lines are
// skipped):
//
//   schedule 1f1b                 the name, to the end of the line, with C escapes
//   devices 2
//   micro_batches 2
//   slices 1
//   stages 2
//   replay 2                      outputs in the buffer before a stage; only where there is one
//   stage_micro_batches 2 1       micro-batches of each stage; only where they differ
//   edges chain                   or pairs: edges 0-1 0-2 1-3 2-3
//   carried - - 0 1               whose output each micro-batch takes along edges such as
//                                 1-0:carries; only where there are some
//   replica 0: 0 1                a device for each stage; a group of devices: 0+1
//   replica_of_micro_batch 0*2    runs: replica*count
//   device 0: 0F0 0F1 0B0 0B1
//   device 1: 1F0 1B0 1F1 1B1
//
// A parsed schedule is well formed, not yet valid: Validate it. Errors are InvalidArgument and name
// line and column (from 1) and what would be right. Numbers are bounded by what the text can fill,
// so no text makes the parser allocate more than a small multiple of its length.
//
// The CSV form is PyTorch's: a row a device, cells such as 0F0, 0I0, 0W0, 0B0, empty cells skipped.
// It has no header, so only chains of stages without slices, versions, groups and offloads,
// with micro-batches of one size, can take it. What PyTorch's lowering adds is read too:
// (0F3;3B1)OVERLAP_F_B is 0F3 and then 3B1 (run as one unit by ir/atomic_pairs.h); messages
// (0SEND_F0, 0RECV_F0, 0SEND_B0, 0RECV_B0), gathers of sharded parameters (0UNSHARD, 0RESHARD) and
// reductions (0REDUCE_GRAD) are counted and left out, because Lower makes its own.
#ifndef PIPELAB_PIPELINES_IR_TEXT_H_
#define PIPELAB_PIPELINES_IR_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

std::string ToText(const Schedule& schedule);
absl::StatusOr<Schedule> ParseSchedule(absl::string_view text);

// InvalidArgument when the schedule has something that cells cannot say.
absl::StatusOr<std::string> ToCsv(const Schedule& schedule);

// Cells that ParseCsv left out.
struct CsvSkipped {
  int64_t messages = 0, gathers = 0, reductions = 0;
  int64_t total() const { return messages + gathers + reductions; }
};
// Stages, micro-batches and placement follow from the cells. Micro-batches that run on different
// devices get different replicas (bidirectional pipelines), numbered in micro-batch order.
absl::StatusOr<Schedule> ParseCsv(absl::string_view csv, CsvSkipped* skipped = nullptr);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_TEXT_H_
