// KeepsMicroBatchOrder of training.h: what is read off the schedule alone.
#include <vector>

#include "pipelines/ir/schedule.h"
#include "pipelines/runtime/training.h"

namespace pipelab {

bool KeepsMicroBatchOrder(const Schedule& schedule) {
  if (schedule.num_slices > 1) return false;  // sums over a micro-batch's tokens come in parts
  if (!schedule.micro_batches_of_stage.empty()) return false;
  for (int stage = 0; stage < schedule.num_stages(); ++stage) {
    int copies = 0;
    for (const auto& replica : schedule.placement.groups) {
      copies += static_cast<int>(replica[stage].size());
    }
    if (copies > 1) return false;
  }
  std::vector<int> last(schedule.num_stages(), -1);
  for (const std::vector<Action>& order : schedule.order) {
    for (const Action& a : order) {
      if (a.kind != ActionKind::kBackward && a.kind != ActionKind::kBackwardWeight) continue;
      if (a.micro_batch < last[a.stage]) return false;
      last[a.stage] = a.micro_batch;
    }
  }
  return true;
}

}  // namespace pipelab
