// What each device sends within its tensor-parallel group in one run of a program, by rings: the
// collectives inside its layers (cost/stage_costs.h), the messages that it gathers, and its share
// of the global norm, which a group sums before the pipeline's devices do.
//
//   AddTensorTraffic(program, costs, instruction_costs, &trace);   // tensor_bytes
//   AddStatisticsTraffic(program, costs, &trace);                  // collective_bytes
//
// The second is what the copies of a stage send to one another within its passes.
#ifndef PIPELAB_PIPELINES_SIM_TENSOR_TRAFFIC_H_
#define PIPELAB_PIPELINES_SIM_TENSOR_TRAFFIC_H_

#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "pipelines/sim/instruction_cost.h"

namespace pipelab {

void AddTensorTraffic(const Program& program, const CostTable& costs,
                      const InstructionCostTable& instruction_costs, Trace* trace);
void AddStatisticsTraffic(const Program& program, const CostTable& costs, Trace* trace);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_TENSOR_TRAFFIC_H_
