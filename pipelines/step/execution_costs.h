// The price of an execution (execution.h) on a machine.
//
//   PIPELAB_RETURN_IF_ERROR(CheckExecution(config));
//   AddExecutionCosts(ranks, model, config, &costs);
#ifndef PIPELAB_PIPELINES_STEP_EXECUTION_COSTS_H_
#define PIPELAB_PIPELINES_STEP_EXECUTION_COSTS_H_

#include "pipelines/cluster/device.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/step/step_config.h"
#include "pipelines/step/step_model.h"

namespace pipelab {

void AddExecutionCosts(const RankNetwork& ranks, const StepModel& model, const StepConfig& config,
                       CostTable* costs);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_EXECUTION_COSTS_H_
