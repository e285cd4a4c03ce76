#include "pipelines/plan/grid_point.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/plan/grid_network.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/memory_levels.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status CheckDevices(const GridModel& model, const GridConfig& c) {
  for (const auto& [option, value] :
       {std::make_pair("--pipeline", c.pipeline), std::make_pair("--tensor", c.tensor),
        std::make_pair("--data", c.data)}) {
    if (value < 1) {
      return absl::InvalidArgumentError(absl::StrCat(option, "=", value, ": must be at least 1"));
    }
  }
  PIPELAB_RETURN_IF_ERROR(CheckTensorParallel(model.model->graph, c.split(), "T", "sequence"));
  if (c.devices() > model.cluster->max_devices()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a grid of ", c.pipeline, " x ", c.tensor, " x ", c.data, " is ", c.devices(),
        " devices; cluster ", model.cluster->name, " has ", model.cluster->max_devices()));
  }
  return absl::OkStatus();
}

// A member of a group of g takes 1 / g of everything (cost_table.h), and these are its own.
void ScaleToGroup(int members, CostTable* costs) {
  for (StageCost& stage : costs->stages) {
    for (Nanoseconds* time :
         {&stage.forward, &stage.backward_input, &stage.backward_weight, &stage.recompute}) {
      *time = *time * members;
    }
    for (Bytes* bytes : stage.memory.Activations()) *bytes = *bytes * members;
    StageCost::TensorTraffic& traffic = stage.tensor_traffic;
    for (Bytes* bytes : {&traffic.forward, &traffic.backward_input, &traffic.backward_weight}) {
      *bytes = *bytes * members;
    }
  }
  for (Bytes& bytes : costs->edge_bytes) bytes = bytes * members;
}

CostTable CostsOf(const GridModel& model, const GridConfig& c, const CostTable& of_a_device) {
  CostTable costs = of_a_device;
  ScaleToGroup(MembersOf(model, c), &costs);
  costs.overlap = c.overlap_pipeline;
  costs.reduce = CallOverhead(model);
  costs.network = GridLinks(model, c, of_a_device).NetworkOf(MembersOf(model, c));
  return costs;
}

// What is put together of sharded weights and gradients comes and goes, so the state may be at its
// peak when the activations are not.
Bytes LargestDeviceOf(const GridPoint& point) {
  if (point.config.data == 1 || !ShardsGradients(point.config.sharding)) {
    return LargestDevice(point.trace);
  }
  Bytes largest;
  for (const MemoryPeak& peak : PeakMemory(point.program, point.costs)) {
    largest = std::max(largest, peak.parts.total());
  }
  return largest;
}

void Summarise(Flops model_flops, GridPoint* point) {
  point->step_time = point->trace.makespan;
  point->largest_device = LargestDeviceOf(*point);
  const double seconds = static_cast<double>(point->step_time.value()) * 1e-9;
  point->tflops_a_device =
      model_flops.value() / seconds / static_cast<double>(point->config.devices()) * 1e-12;
}

}  // namespace

absl::StatusOr<GridPoint> EvaluateGrid(GridCache* cache, const GridConfig& config) {
  const GridModel& model = cache->model();
  PIPELAB_RETURN_IF_ERROR(CheckDevices(model, config));
  const int members = MembersOf(model, config);
  PIPELAB_ASSIGN_OR_RETURN(Schedule schedule,
                           MakeSchedule(config.scheme, SchemeSizes(config, members)));
  PIPELAB_ASSIGN_OR_RETURN(const GridStages stages, cache->StagesOf(config, schedule.num_stages()));
  GridPoint point;
  point.config = config;
  point.costs = CostsOf(model, config, *stages.costs);
  LoweringOptions lowering;
  lowering.stages = stages.partition->stages;
  lowering.ties = *stages.ties;
  lowering.sharding = config.sharding;
  lowering.residency = config.residency;
  lowering.overlap = config.overlap_data && ShardsGradients(config.sharding);
  lowering.eager_reductions = config.overlap_data;
  PIPELAB_ASSIGN_OR_RETURN(point.program, Lower(std::move(schedule), lowering));
  point.program.devices_a_member = config.data / members;
  PIPELAB_ASSIGN_OR_RETURN(point.trace, Simulate(point.program, point.costs));
  Summarise(cache->ModelFlops(config.batch()), &point);
  return point;
}

absl::StatusOr<GridPoint> EvaluateGrid(const GridModel& model, const GridConfig& config) {
  GridCache cache(model);
  return EvaluateGrid(&cache, config);
}

}  // namespace pipelab
