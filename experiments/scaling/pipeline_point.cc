#include "experiments/scaling/pipeline_point.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/plan/partition.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

Machine MachineOf(const PipelineCase& c) { return {c.cluster->device, c.type}; }

double FlopsOf(const LayerSpec& layer, int64_t samples) {
  const LayerCosts costs = layer.costs(samples);
  return (costs.forward + costs.backward_input + costs.backward_weight).value();
}

absl::StatusOr<double> TimeOf(const LayerSpec& layer, const PipelineCase& c) {
  PIPELAB_ASSIGN_OR_RETURN(const LayerTimes t, TimesOf(layer, MachineOf(c), c.micro_batch_samples));
  const Nanoseconds forwards = t.forward * (c.sizes.recompute ? 2 : 1);
  return static_cast<double>((forwards + t.backward_input + t.backward_weight).value());
}

// State, and the activations of one micro-batch, or of all where nothing is recomputed.
double MemoryOf(const LayerSpec& layer, const PipelineCase& c) {
  double parameters = 0;
  for (const ParameterSpec& p : layer.parameters) parameters += static_cast<double>(p.size());
  const LayerCosts costs = layer.costs(c.micro_batch_samples);
  const double kept = static_cast<double>((costs.kept + costs.output).value()) / 4 *
                      static_cast<double>(BytesOf(c.type));
  return 4 * (2 + c.optimizer_tensors) * parameters +
         kept * (c.sizes.recompute ? 1 : c.sizes.micro_batches);
}

absl::StatusOr<std::vector<int>> CutGroups(const PipelineCase& c, int stages) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> costs, GroupCosts(c));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> first,
                           c.rule == PartitionRule::kFlopsVariance
                               ? PartitionChainByVariance(costs, stages)
                               : PartitionChain(costs, stages));
  return StageSizes(first, static_cast<int>(costs.size()));
}

absl::StatusOr<CostTable> CostsOfCase(const PipelineCase& c, const Schedule& schedule,
                                      const ModelPartition& partition) {
  StageCostOptions options;
  options.machine = MachineOf(c);
  options.optimizer_tensors = c.optimizer_tensors;
  for (int s = 0; s < schedule.num_stages(); ++s) {
    options.micro_batch_sizes.push_back(schedule.MicroBatchSize(s));
  }
  PIPELAB_ASSIGN_OR_RETURN(CostTable costs, ComputeStageCosts(c.model->graph, partition,
                                                              c.micro_batch_samples, options));
  PIPELAB_ASSIGN_OR_RETURN(costs.network, MakeNetwork(*c.cluster, schedule.num_devices()));
  return costs;
}

}  // namespace

double PipelinePoint::samples_per_second() const {
  return static_cast<double>(samples) / (static_cast<double>(trace.makespan.value()) * 1e-9);
}

Bytes PipelinePoint::largest_device() const { return LargestDevice(trace); }

Bytes PipelinePoint::activations() const {
  Bytes sum;
  for (const DeviceTrace& d : trace.devices) sum += d.peak_activation;
  return sum;
}

Bytes PipelinePoint::state() const {
  Bytes sum;
  for (const DeviceTrace& d : trace.devices) sum += d.peak_state;
  return sum;
}

std::string PipelinePoint::Layout() const { return absl::StrJoin(groups_of_stage, ","); }

absl::StatusOr<std::vector<double>> GroupCosts(const PipelineCase& c) {
  const GroupedModel& model = *c.model;
  std::vector<double> costs(model.num_groups(), 0);
  for (size_t i = 0; i < model.graph.layers.size(); ++i) {
    const LayerSpec& layer = model.graph.layers[i];
    double* cost = &costs[model.group_of_layer[i]];
    switch (c.rule) {
      case PartitionRule::kFlopsVariance:
        *cost += FlopsOf(layer, c.micro_batch_samples);
        break;
      case PartitionRule::kTime: {
        PIPELAB_ASSIGN_OR_RETURN(const double time, TimeOf(layer, c));
        *cost += time;
        break;
      }
      case PartitionRule::kMemory:
        *cost += MemoryOf(layer, c);
        break;
    }
  }
  return costs;
}

absl::StatusOr<PipelinePoint> EvaluatePipeline(const PipelineCase& c) {
  PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, MakeSchedule(c.scheme, c.sizes));
  PipelinePoint point;
  PIPELAB_ASSIGN_OR_RETURN(point.groups_of_stage, CutGroups(c, schedule.num_stages()));
  PIPELAB_ASSIGN_OR_RETURN(std::vector<int> stage_of_layer,
                           StagesOfGroups(*c.model, point.groups_of_stage));
  PIPELAB_ASSIGN_OR_RETURN(const ModelPartition partition,
                           MakePartition(c.model->graph, std::move(stage_of_layer)));
  PIPELAB_ASSIGN_OR_RETURN(point.costs, CostsOfCase(c, schedule, partition));
  point.samples = c.micro_batch_samples * schedule.num_micro_batches;
  LoweringOptions lowering;
  lowering.stages = partition.stages;
  lowering.ties = StageTies(c.model->graph, partition);
  PIPELAB_ASSIGN_OR_RETURN(point.program, Lower(std::move(schedule), lowering));
  PIPELAB_ASSIGN_OR_RETURN(point.trace, Simulate(point.program, point.costs));
  return point;
}

absl::StatusOr<Trace> SimulateBalanced(const PipelinePoint& point) {
  CostTable costs = point.costs;
  const int64_t stages = static_cast<int64_t>(costs.stages.size());
  for (Nanoseconds StageCost::*time :
       {&StageCost::forward, &StageCost::backward_input, &StageCost::backward_weight,
        &StageCost::recompute, &StageCost::step}) {
    int64_t sum = 0;
    for (const StageCost& stage : costs.stages) sum += (stage.*time).value();
    for (StageCost& stage : costs.stages) stage.*time = Nanoseconds(sum / stages);
  }
  return Simulate(point.program, costs);
}

}  // namespace pipelab
