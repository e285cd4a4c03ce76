// pipelab plan --graph: divides a graph's vertices over devices, and says how well.
#ifndef PIPELAB_EXPERIMENTS_PLAN_COMMANDS_GRAPH_PARTS_H_
#define PIPELAB_EXPERIMENTS_PLAN_COMMANDS_GRAPH_PARTS_H_

#include "absl/status/status.h"

namespace pipelab {

// By --graph, --partition, --devices, --seed, --fanouts and --parts_out.
absl::Status PlanGraphParts();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PLAN_COMMANDS_GRAPH_PARTS_H_
