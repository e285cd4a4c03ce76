// What passes of stages do to a device's memory, for those that make orders (schedules/catalog.h).
//
//   OrderLimits limits = MemoryOfStages(partition.stages, costs, /*recomputed=*/{});
//   limits.free.assign(devices, Bytes(1 << 30));
#ifndef PIPELAB_PIPELINES_STEP_ORDER_MEMORY_H_
#define PIPELAB_PIPELINES_STEP_ORDER_MEMORY_H_

#include <vector>

#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/catalog.h"

namespace pipelab {

// As the simulator counts, but for messages: [stage], or [stage * slices + slice] where the costs
// are those of token slices. `recomputed`: by stage; empty: none is. `whole`: backwards are not
// split, and `backward_input` is all of one.
OrderLimits MemoryOfStages(const StageGraph& stages, const CostTable& costs,
                           const std::vector<bool>& recomputed, bool whole = false);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_ORDER_MEMORY_H_
