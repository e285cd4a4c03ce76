#include "pipelines/plan/grid_point.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/cluster/grid_links.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/plan/grid_cut.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

Machine MachineOf(const GridModel& model) { return {model.cluster->device, model.type}; }

absl::Status CheckDevices(const GridModel& model, const GridConfig& c) {
  for (const auto& [option, value] :
       {std::make_pair("--pipeline", c.pipeline), std::make_pair("--tensor", c.tensor),
        std::make_pair("--data", c.data)}) {
    if (value < 1) {
      return absl::InvalidArgumentError(absl::StrCat(option, "=", value, ": must be at least 1"));
    }
  }
  if (c.devices() > model.cluster->max_devices()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a grid of ", c.pipeline, " x ", c.tensor, " x ", c.data, " is ", c.devices(),
        " devices; cluster ", model.cluster->name, " has ", model.cluster->max_devices()));
  }
  return absl::OkStatus();
}

// Copies that the program has of a data-parallel group: two stand for all where all are alike.
int MembersOf(const GridModel& model, const GridConfig& c) {
  return model.fold_data && c.data % 2 == 0 ? 2 : c.data;
}

absl::StatusOr<Schedule> ScheduleOf(const GridModel& model, const GridConfig& c) {
  SchemeParams sizes;
  sizes.devices = c.pipeline;
  sizes.micro_batches = c.micro_batches;
  sizes.chunks = c.loops;
  sizes.recompute = c.recompute;
  sizes.data_parallel = MembersOf(model, c);
  return MakeSchedule(c.scheme, sizes);
}

// A member of a group of g takes 1 / g of everything (cost_table.h), and these are its own.
void ScaleToGroup(int members, CostTable* costs) {
  for (StageCost& stage : costs->stages) {
    for (Nanoseconds* time :
         {&stage.forward, &stage.backward_input, &stage.backward_weight, &stage.recompute}) {
      *time = *time * members;
    }
    for (Bytes* bytes : stage.memory.Activations()) *bytes = *bytes * members;
  }
  for (Bytes& bytes : costs->edge_bytes) bytes = bytes * members;
}

// A ring over all of a group takes on a ring over the program's members as long as it should.
PathCost RingOfMembers(const PathCost& hop, int64_t data, int64_t members) {
  const double of_all = static_cast<double>(data - 1) / static_cast<double>(data);
  const double of_members = static_cast<double>(members - 1) / static_cast<double>(members);
  return {Nanoseconds(hop.latency.value() * (data - 1) / (members - 1)),
          BytesPerSecond(hop.bandwidth.value() * of_members / of_all)};
}

// The largest message, whole.
Bytes LargestEdge(const CostTable& costs, int members) {
  Bytes largest;
  for (const Bytes bytes : costs.edge_bytes) largest = std::max(largest, bytes);
  return Bytes(largest.value() / members);
}

Nanoseconds CallOverhead(const GridModel& model) {
  const auto& overhead = model.cluster->device.collective_overhead;
  return overhead.has_value() ? overhead->value : Nanoseconds(0);
}

// Every device of a tensor-parallel group has all rows of an output, or with sequence parallelism
// its own alone.
bool DividesMessages(const GridConfig& c) {
  return c.tensor > 1 && !c.sequence_parallel && !c.whole_messages;
}

// What a message takes beside the links between its stages. Its send and receive are a call of the
// communication library of their own. Where the devices of a tensor-parallel group send a T-th of
// the rows each, the receivers put them together within their group (Narayanan et al. 2021, section
// 4.1), by one collective more.
Nanoseconds MessageOverhead(const GridModel& model, const GridConfig& c, const CostTable& costs) {
  const Nanoseconds call = CallOverhead(model);
  if (!DividesMessages(c)) return call;
  return call + call +
         RingTime(TensorGroupOf(model, c.split()).hop, c.tensor, Collective::kAllGather,
                  LargestEdge(costs, MembersOf(model, c)));
}

// A link for each ordered pair of the program's devices.
Network GridNetwork(const GridModel& model, const GridConfig& c, const CostTable& costs) {
  const Nanoseconds overhead = MessageOverhead(model, c, costs);
  const int64_t sent_parts = DividesMessages(c) ? c.tensor : 1;
  const int members = MembersOf(model, c), devices = c.pipeline * members;
  const int64_t copies = int64_t{c.tensor} * c.data;
  PathCost ring;
  if (c.data > 1) {
    // Gradients and weights travel in the products' numbers; tables count 4 bytes each.
    ring = RingOfMembers(RingHop(*model.cluster, {c.data, c.tensor}), c.data, members);
    ring.bandwidth =
        BytesPerSecond(ring.bandwidth.value() * 4 / static_cast<double>(BytesOf(model.type)));
  }
  Network network;
  network.num_devices = devices;
  network.paths.resize(static_cast<size_t>(devices) * devices);
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      if (from == to) continue;
      const int64_t p = from / members, q = to / members;
      PathCost cost = ring;
      if (p != q) {
        cost = NeighbourHop(*model.cluster, p * copies, q * copies, copies);
        cost.latency += overhead;
        cost.bandwidth = BytesPerSecond(cost.bandwidth.value() * static_cast<double>(sent_parts));
      }
      network.Path(from, to) = {static_cast<int>(network.links.size())};
      network.links.push_back({"", cost.latency, cost.bandwidth});
    }
  }
  return network;
}

absl::StatusOr<CostTable> CostsOf(const GridModel& model, const GridConfig& c,
                                  const ModelPartition& partition) {
  StageCostOptions options;
  options.machine = MachineOf(model);
  options.optimizer_tensors = model.optimizer_tensors;
  options.tensor = TensorGroupOf(model, c.split());
  PIPELAB_ASSIGN_OR_RETURN(CostTable costs, ComputeStageCosts(model.model->graph, partition,
                                                              c.micro_batch_samples, options));
  ScaleToGroup(MembersOf(model, c), &costs);
  costs.overlap = c.overlap_pipeline;
  costs.reduce = CallOverhead(model);
  costs.network = GridNetwork(model, c, costs);
  return costs;
}

void Summarise(const GridModel& model, GridPoint* point) {
  point->step_time = point->trace.makespan;
  for (const DeviceTrace& d : point->trace.devices) {
    point->largest_device = std::max(point->largest_device, d.peak_activation + d.peak_state);
  }
  const double seconds = static_cast<double>(point->step_time.value()) * 1e-9;
  point->tflops_a_device = ModelFlops(model.model->graph, point->config.batch()).value() / seconds /
                           static_cast<double>(point->config.devices()) * 1e-12;
}

}  // namespace

Flops ModelFlops(const ModelGraph& graph, int64_t samples) {
  Flops flops;
  for (const LayerSpec& layer : graph.layers) {
    const LayerCosts costs = layer.costs(samples);
    flops += costs.forward + costs.backward_input + costs.backward_weight;
  }
  return flops;
}

absl::StatusOr<GridPoint> EvaluateGrid(const GridModel& model, const GridConfig& config) {
  PIPELAB_RETURN_IF_ERROR(CheckDevices(model, config));
  PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, ScheduleOf(model, config));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<StageCost> times,
                           GroupTimes(model, config.split(), config.micro_batch_samples));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> groups,
                           CutGroups(times, config.recompute, schedule.num_stages()));
  PIPELAB_ASSIGN_OR_RETURN(std::vector<int> stage_of_layer, StagesOfGroups(*model.model, groups));
  PIPELAB_ASSIGN_OR_RETURN(const ModelPartition partition,
                           MakePartition(model.model->graph, std::move(stage_of_layer)));
  schedule.stages = partition.stages;
  GridPoint point;
  point.config = config;
  PIPELAB_ASSIGN_OR_RETURN(point.costs, CostsOf(model, config, partition));
  LoweringOptions lowering;
  lowering.ties = StageTies(model.model->graph, partition);
  lowering.sharding = config.sharding;
  lowering.residency = config.residency;
  lowering.overlap = config.overlap_data && config.sharding >= Sharding::kGradients;
  lowering.eager_reductions = config.overlap_data;
  PIPELAB_ASSIGN_OR_RETURN(point.program, Lower(std::move(schedule), lowering));
  point.program.devices_a_member = config.data / MembersOf(model, config);
  PIPELAB_ASSIGN_OR_RETURN(point.trace, Simulate(point.program, point.costs));
  Summarise(model, &point);
  return point;
}

}  // namespace pipelab
