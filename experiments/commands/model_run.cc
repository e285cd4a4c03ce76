#include "experiments/commands/model_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/training_layout.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/ir/program.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::optional<Machine> MachineOf(const ModelRunOptions& options) {
  if (!options.cluster.has_value()) return absl::nullopt;
  return Machine{options.cluster->device, TypeOf(options)};
}

absl::Status CheckMeasured(const LayerSpec& layer, const std::vector<Operation>& operations) {
  for (const Operation& o : operations) {
    if (o.kind == OperationKind::kMeasured || o.own) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--cluster: missing, and layer \"", layer.name,
                     "\" has flops and no measured time; give the machine that it is to run on"));
  }
  return absl::OkStatus();
}

// Without a cluster every layer must have been measured.
absl::Status CheckHasTimes(const ModelGraph& graph, const ModelRunOptions& options) {
  if (options.cluster.has_value()) return absl::OkStatus();
  for (const LayerSpec& layer : graph.layers) {
    const LayerOperations ops = layer.operations(1, TokenSlice());
    for (const auto* pass : {&ops.forward, &ops.backward_input, &ops.backward_weight}) {
      PIPELAB_RETURN_IF_ERROR(CheckMeasured(layer, *pass));
    }
  }
  return absl::OkStatus();
}

// [layer] Of a micro-batch: forward and backward.
absl::StatusOr<std::vector<double>> LayerCostsOn(const absl::optional<Machine>& machine,
                                                 const ModelGraph& graph, int64_t samples) {
  std::vector<double> costs;
  for (const LayerSpec& layer : graph.layers) {
    // A device has no say in what was measured.
    const absl::StatusOr<LayerTimes> times = TimesOf(layer, machine.value_or(Machine()), samples);
    if (!times.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--cluster, --number_type: ", times.status().message()));
    }
    costs.push_back(ToSeconds(times->forward + times->backward_input + times->backward_weight));
  }
  return costs;
}

absl::StatusOr<CostTable> CostsFor(const ModelGraph& graph, const ModelPartition& partition,
                                   const Schedule& schedule, const ModelRunOptions& options,
                                   const absl::optional<Machine>& machine) {
  StageCostOptions cost_options;
  cost_options.machine = machine;
  if (!machine.has_value()) cost_options.step_flops_per_parameter = 0;
  if (schedule.num_slices > 1) {
    PIPELAB_RETURN_IF_ERROR(CheckTakesSlices(graph));
    PIPELAB_ASSIGN_OR_RETURN(cost_options.slices,
                             ChooseSlices(schedule, graph.layers[0].output_shape[0], {}));
  }
  cost_options.TakeSizes(schedule);
  PIPELAB_ASSIGN_OR_RETURN(CostTable costs,
                           ComputeStageCosts(graph, partition, options.samples, cost_options));
  costs.overlap = options.overlap;
  if (options.cluster.has_value()) {
    absl::StatusOr<Network> network = MakeNetwork(*options.cluster, schedule.num_devices());
    if (!network.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--cluster=", options.cluster->name, ": ", network.status().message()));
    }
    costs.network = *std::move(network);
  }
  return costs;
}

}  // namespace

NumberType TypeOf(const ModelRunOptions& options) {
  if (options.type.has_value()) return *options.type;
  if (!options.cluster.has_value()) return NumberType::kFp32;
  const auto& peaks = options.cluster->device.peaks;
  return peaks.count(NumberType::kFp32) > 0 ? NumberType::kFp32 : peaks.begin()->first;
}

absl::Status CheckSamples(const ModelGraph& graph, const ModelRunOptions& options,
                          int64_t micro_batches) {
  if (options.samples < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--samples=", options.samples, ": must be at least 1"));
  }
  PIPELAB_RETURN_IF_ERROR(CheckHasTimes(graph, options));
  // One sample through everything, with room for what else a step does and for slow networks.
  constexpr double kMost = 9e17;
  double nanoseconds = 1, bytes = 1;
  for (const LayerSpec& layer : graph.layers) {
    const LayerCosts costs = layer.costs(1);
    for (Bytes b : {costs.output, costs.kept, costs.forward_peak, costs.backward_peak}) {
      bytes += static_cast<double>(b.value());
    }
    const auto times = TimesOf(layer, MachineOf(options).value_or(Machine()), 1);
    if (!times.ok()) continue;  // who needs them says so
    for (Nanoseconds t : {times->forward, times->backward_input, times->backward_weight}) {
      nanoseconds += static_cast<double>(t.value());
    }
  }
  const double most = kMost / std::max(nanoseconds, bytes) / static_cast<double>(micro_batches);
  if (static_cast<double>(options.samples) <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--samples=", options.samples, ": must be at most ",
      static_cast<int64_t>(std::max(1.0, most)), " with ", micro_batches, " micro-batches of ",
      graph.name, ", whose step must fit 63 bits of nanoseconds and of bytes"));
}

absl::StatusOr<PaperRun> RunModelOnPaper(const ModelGraph& graph, Schedule schedule,
                                         const ModelRunOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckSamples(graph, options, schedule.num_micro_batches));
  const absl::optional<Machine> machine = MachineOf(options);
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> layer_costs,
                           LayerCostsOn(machine, graph, options.samples));
  PIPELAB_ASSIGN_OR_RETURN(
      const ModelPartition partition,
      ChooseBalancedPartition(graph, schedule.num_stages(), layer_costs, options.layout));
  PaperRun run;
  LoweringOptions lowering;
  lowering.stages = partition.stages;
  lowering.ties = StageTies(graph, partition);
  PIPELAB_ASSIGN_OR_RETURN(run.program, Lower(std::move(schedule), lowering));
  PIPELAB_ASSIGN_OR_RETURN(run.costs,
                           CostsFor(graph, partition, run.program.schedule, options, machine));
  PIPELAB_ASSIGN_OR_RETURN(run.trace, Simulate(run.program, run.costs));
  run.nanoseconds_per_unit = Milliseconds(1).value();
  run.has_bytes = true;
  run.unit = "ms";
  return run;
}

}  // namespace pipelab
