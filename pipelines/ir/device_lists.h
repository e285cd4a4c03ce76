// A schedule from device lists alone: stages, micro-batches and placement follow from where actions
// stand. What the CSV and JSON forms share.
//
//   PIPELAB_ASSIGN_OR_RETURN(Schedule s, ScheduleFromDeviceLists(std::move(rows), "the CSV"));
//
// Stages form a chain. Micro-batches that run on different devices get different replicas
// (bidirectional pipelines), numbered in micro-batch order. The result is well formed, not yet
// valid: a micro-batch without any action of a stage is placed as others are. Errors are
// InvalidArgument and name device, position and action; memory is bounded by a small multiple of
// the number of actions.
#ifndef PIPELAB_PIPELINES_IR_DEVICE_LISTS_H_
#define PIPELAB_PIPELINES_IR_DEVICE_LISTS_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

// Devices have 16 bits in programs.
inline constexpr size_t kMostDeviceLists = 32767;

// `what` begins messages about the whole: "the CSV".
absl::StatusOr<Schedule> ScheduleFromDeviceLists(std::vector<std::vector<Action>> rows,
                                                 absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_DEVICE_LISTS_H_
