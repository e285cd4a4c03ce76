#include "pipelines/plan/plan_point.h"

#include <algorithm>
#include <utility>

#include "pipelines/cost/stage_costs.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::StatusOr<CostTable> CostsOf(const ModelGraph& graph, const PlanPipeline& pipeline,
                                  const PlanMachine& machine) {
  StageCostOptions options;
  if (machine.cluster != nullptr) {
    options.machine = Machine{machine.cluster->device, machine.type};
  } else {
    options.step_flops_per_parameter = 0;
  }
  options.TakeSizes(pipeline.schedule);
  PIPELAB_ASSIGN_OR_RETURN(
      CostTable costs,
      ComputeStageCosts(graph, pipeline.partition, pipeline.micro_batch_samples, options));
  costs.edge_bytes.resize(pipeline.schedule.stages.edges.size());  // a chain's carry nothing
  return costs;
}

}  // namespace

double PlanPoint::samples_per_second() const {
  return static_cast<double>(samples) / ToSeconds(trace.makespan);
}

Bytes PlanPoint::largest_device() const {
  Bytes largest;
  for (const DeviceTrace& d : trace.devices) {
    largest = std::max(largest, d.peak_activation + d.peak_state);
  }
  return largest;
}

absl::StatusOr<PlanPoint> SimulatePlan(const ModelGraph& graph, const PlanPipeline& pipeline,
                                       const PlanMachine& machine) {
  PlanPoint point;
  point.samples = pipeline.micro_batch_samples * pipeline.schedule.num_micro_batches;
  PIPELAB_ASSIGN_OR_RETURN(point.costs, CostsOf(graph, pipeline, machine));
  point.costs.overlap = machine.overlap;
  if (machine.cluster != nullptr) {
    PIPELAB_ASSIGN_OR_RETURN(point.costs.network,
                             MakeNetwork(*machine.cluster, pipeline.schedule.num_devices()));
  }
  LoweringOptions lowering;
  lowering.ties = StageTies(graph, pipeline.partition);
  PIPELAB_ASSIGN_OR_RETURN(point.program, Lower(pipeline.schedule, lowering));
  PIPELAB_ASSIGN_OR_RETURN(point.trace, Simulate(point.program, point.costs));
  return point;
}

}  // namespace pipelab
