#include "pipelines/step/execution_costs.h"

#include "pipelines/step/execution.h"

namespace pipelab {
namespace {

// Bytes a parameter, over all of a device's: unscaling gradients reads and writes 4, the norm reads
// 4, and the copy reads 4 and writes 2.
constexpr int64_t kPassBytes = 18;

}  // namespace

void AddExecutionCosts(const RankNetwork& ranks, const StepModel& model, const StepConfig& c,
                       CostTable* costs) {
  const Nanoseconds gap = LaunchGap(model.cluster->device);
  if ((c.execution & (kGroupedCalls | kStepChecks)) != 0) costs->launch_gap = gap;
  if ((c.execution & kGroupedCalls) != 0) costs->message_gather = ranks.MessageGather();
  for (StageCost& stage : costs->stages) {
    if ((c.execution & kInputBroadcasts) != 0) stage.forward += gap + ranks.SmallBroadcast() * 2;
    if ((c.execution & kStepPasses) != 0) {
      const int64_t of_optimizer = 4 * (3 + 2 * model.optimizer_tensors);  // layer_times.h
      stage.step += Nanoseconds(stage.step.value() * kPassBytes / of_optimizer);
    }
  }
}

}  // namespace pipelab
