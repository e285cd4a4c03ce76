// early_recompute of a configuration: whole stages are rebuilt where a device would wait
// (schedules/early_recompute.h), by the times of the step's own passes and messages.
//
//   PIPELAB_ASSIGN_OR_RETURN(Schedule early, RecomputeEarly(config, schedule, LengthsOf(step)));
//
// With early_recompute=N a device has at most N rebuilt stage activations before their place in the
// scheme's order: memory for about N more than without, which predictions have to the byte. 0: the
// schedule as it is.
#ifndef PIPELAB_PIPELINES_STEP_RECOMPUTE_GAPS_H_
#define PIPELAB_PIPELINES_STEP_RECOMPUTE_GAPS_H_

#include "absl/status/statusor.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

// `schedule` is of one copy. InvalidArgument without recompute=full, or where weights travel.
absl::StatusOr<Schedule> RecomputeEarly(const StepConfig& config, Schedule schedule,
                                        const PassLengths& lengths);

// The lengths of passes in a step of these costs; messages as if nothing else were under way.
// `schedule`: the program's.
PassLengths LengthsOf(const CostTable& costs, const Schedule& schedule);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_RECOMPUTE_GAPS_H_
