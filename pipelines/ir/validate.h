// Says whether a schedule is sound, before anything runs. O(actions).
//
//   PIPELAB_RETURN_IF_ERROR(Validate(schedule));
//
// Sound means: sizes and placement make sense; every action is on a device of its stage's group;
// every (stage, micro-batch, slice) has one F and either one B or one I and one W, on every member
// of the group; a stage recomputes all micro-batches or none; what is offloaded (O), once its
// forward has kept it, comes back (L) before the backward, and is of a stage that does not
// recompute; weight versions exist when they are used, a micro-batch has one at a stage, and every
// gradient is in one; and the device lists together with ForEachDependency have no cycle, which is
// freedom from deadlock (Lower's messages add none).
//
// Errors are InvalidArgument, one line in the user's terms, positions counted from 0 as in the text
// form:
//   device 2, position 5: 1B3 comes before its forward 1F3 (position 7)
//   device 1, position 4: 1F1 is missing; 1B1 here needs it
//   deadlock: device 0 position 1 (0B0) waits for 1B0 (device 1 position 3), which comes after ...
#ifndef PIPELAB_PIPELINES_IR_VALIDATE_H_
#define PIPELAB_PIPELINES_IR_VALIDATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

absl::Status Validate(const Schedule& schedule);

// The parts of Validate, for Lower, which walks the order itself.
// Everything but the order between actions.
absl::Status ValidateActions(const Schedule& schedule);
// OK when every device got through its list, else why not: the action that is before what it needs
// on its own device, or the shortest cycle of devices that wait for each other. `done`: from
// VisitInGlobalOrder.
absl::Status CheckAllDone(const Schedule& schedule, absl::Span<const int32_t> done);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_VALIDATE_H_
