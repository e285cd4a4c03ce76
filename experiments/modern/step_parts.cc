#include "experiments/modern/step_parts.h"

#include "pipelines/search/breakdown.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<std::vector<StepPart>> SecondsOfParts(const StepModel& on, const StepPrediction& p) {
  PIPELAB_ASSIGN_OR_RETURN(const StepBreakdown b, BreakDown(on, p));
  const double seconds = ToSeconds(p.step_time);
  return std::vector<StepPart>{{"bubble", b.idle * seconds},
                               {"recomputation", b.recompute * seconds},
                               {"collectives within layers", b.tensor * seconds},
                               {"messages", b.pipeline * seconds},
                               {"data-parallel sums", b.data * seconds},
                               {"compute", (b.compute + b.step) * seconds}};
}

StepPart MostLost(const std::vector<StepPart>& slower, const std::vector<StepPart>& other) {
  StepPart most;
  for (size_t i = 0; i < slower.size(); ++i) {
    const double lost = slower[i].seconds - other[i].seconds;
    if (lost > most.seconds) most = {slower[i].name, lost};
  }
  return most;
}

}  // namespace pipelab
