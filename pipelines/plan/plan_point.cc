#include "pipelines/plan/plan_point.h"

#include <algorithm>
#include <utility>

#include "pipelines/cost/stage_costs.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Of one sample on an edge, and of what one device of each stage's group computes.
absl::StatusOr<CostTable> CostsOfDevices(const ModelGraph& graph, const PlanPipeline& pipeline,
                                         const PlanMachine& machine) {
  StageCostOptions options;
  if (machine.cluster != nullptr) {
    options.machine = Machine{machine.cluster->device, machine.type};
  } else {
    options.step_flops_per_parameter = 0;
  }
  for (int s = 0; s < pipeline.partition.num_stages(); ++s) {
    options.micro_batch_sizes.push_back(static_cast<int>(pipeline.DeviceSamples(s)));
  }
  return ComputeStageCosts(graph, pipeline.partition, /*micro_batch_samples=*/1, options);
}

// A member of a group of d is given 1 / d of everything (cost_table.h).
void ScaleToGroups(const PlanPipeline& pipeline, CostTable* costs) {
  for (int s = 0; s < pipeline.partition.num_stages(); ++s) {
    const int64_t copies = pipeline.Copies(s);
    StageCost& stage = costs->stages[s];
    for (Nanoseconds* time :
         {&stage.forward, &stage.backward_input, &stage.backward_weight, &stage.recompute}) {
      *time = *time * copies;
    }
    for (Bytes* bytes : stage.memory.Activations()) *bytes = *bytes * copies;
  }
  for (Bytes& bytes : costs->edge_bytes) bytes = bytes * pipeline.micro_batch_samples;
  costs->edge_bytes.resize(pipeline.schedule.stages.edges.size());  // a chain's carry nothing
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
  PIPELAB_ASSIGN_OR_RETURN(point.costs, CostsOfDevices(graph, pipeline, machine));
  ScaleToGroups(pipeline, &point.costs);
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
