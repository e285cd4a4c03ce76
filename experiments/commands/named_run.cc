#include "experiments/commands/named_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "experiments/commands/plan_input.h"
#include "experiments/commands/run_flags.h"
#include "experiments/commands/schedule_input.h"
#include "experiments/report/timeline_svg.h"
#include "tools/base/status_macros.h"

namespace pipelab {

namespace {

// Without optimizer steps and copies to the host, which are no boxes of a drawing.
int64_t PassesOf(const Schedule& schedule) {
  int64_t passes = 0;
  for (const std::vector<Action>& actions : schedule.order) {
    passes += std::count_if(actions.begin(), actions.end(),
                            [](const Action& a) { return a.kind < ActionKind::kStep; });
  }
  return passes;
}

}  // namespace

absl::StatusOr<NamedRun> ReadNamedRun(const Words& words, int least_decimals,
                                      int64_t most_actions) {
  NamedRun named;
  if (PlanIsGiven()) {
    PIPELAB_ASSIGN_OR_RETURN(const PlanInput input, ReadPlanInput(words));
    PIPELAB_RETURN_IF_ERROR(CheckDrawn(PassesOf(input.pipeline.schedule), most_actions));
    named.source = named.name = input.source;
    PIPELAB_ASSIGN_OR_RETURN(named.run, RunSimulatedPlan(input));
    return named;
  }
  PIPELAB_RETURN_IF_ERROR(CheckNoPlanFlags(/*takes_model=*/true));
  PIPELAB_ASSIGN_OR_RETURN(ScheduleInput input, ReadScheduleInput(words));
  PIPELAB_RETURN_IF_ERROR(CheckDrawn(PassesOf(input.schedule), most_actions));
  // A scheme's own schedule is valid, and lowering checks every one again.
  if (input.kind != InputKind::kScheme) PIPELAB_RETURN_IF_ERROR(CheckInput(input));
  PrintSkippedNote(input);
  named.source = input.source;
  named.name = input.kind == InputKind::kScheme ? input.source : input.schedule.name;
  named.skipped = input.skipped;
  PIPELAB_ASSIGN_OR_RETURN(named.run, RunFromFlags(std::move(input), least_decimals));
  return named;
}

}  // namespace pipelab
