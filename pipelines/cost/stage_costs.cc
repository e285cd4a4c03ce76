#include "pipelines/cost/stage_costs.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/cost/stage_plan.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Height of the memory above its level at the start of an action, and the highest it was.
struct Walk {
  Bytes level, peak;
  Bytes kept, kept_at_peak;  // of these, for the backward

  void Reach(Bytes above) {
    if (level + above < peak) return;
    peak = level + above;
    kept_at_peak = std::min(kept, peak);
  }
};

// What the walks need of one stage.
struct StageBytes {
  const StagePlan& plan;
  std::vector<LayerCosts> costs;  // [place]
  std::vector<Bytes> data;        // [place] what it reads of the data set, while a pass runs
  std::vector<Bytes> value;       // [value]

  Bytes Released(StagePass pass, int place) const {
    Bytes sum;
    for (int v : plan.released(pass)[place]) sum += value[v];
    return sum;
  }
};

StageBytes BytesOf(const ModelGraph& graph, const StagePlan& plan, int64_t samples,
                   TokenSlice slice, TensorParallel split) {
  StageBytes bytes{plan, {}, {}, {}};
  for (int layer : plan.layers) {
    bytes.costs.push_back(CostsOf(graph.layers[layer], samples, slice, split));
    bytes.data.push_back(DataBytes(graph.layers[layer], samples, slice));
  }
  for (const StagePlan::Value& v : plan.values) {
    bytes.value.push_back(CostsOf(graph.layers[v.layer], samples, slice, split).output);
  }
  return bytes;
}

Walk WalkForward(const StageBytes& stage, StagePass pass) {
  const bool drop = pass == StagePass::kForwardDrop;
  const StagePlan& plan = stage.plan;
  Walk walk;
  for (int place = 0; place < static_cast<int>(stage.costs.size()); ++place) {
    const LayerCosts& layer = stage.costs[place];
    const bool again = pass == StagePass::kRecompute && layer.kept_when_dropped > Bytes(0);
    walk.Reach(stage.data[place] + (again ? layer.recompute_peak : layer.forward_peak));
    Bytes kept = drop ? layer.kept_when_dropped : layer.kept;
    if (again) kept -= layer.kept_when_dropped;
    walk.level += layer.output - stage.Released(pass, place) + kept;
    walk.kept += kept;
    if (plan.values[plan.output(place)].kept() && !drop) walk.kept += layer.output;
  }
  if (pass == StagePass::kRecompute) return walk;
  for (size_t v = 0; v < stage.value.size(); ++v) {
    walk.level += stage.value[v] * plan.values[v].copies(drop);
  }
  walk.Reach(Bytes(0));
  return walk;
}

// Each layer gives up what it kept and the gradient of its output, and leaves the gradients of its
// inputs, which become one with those that are there already; between input and weight part it
// holds kept_for_weight as well.
Bytes BackwardPeak(const StageBytes& stage, StagePass pass) {
  const bool fused = pass == StagePass::kBackward;
  const StagePlan& plan = stage.plan;
  Walk walk;
  std::vector<bool> has_gradient;
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const int edges = static_cast<int>(plan.values[v].out_edges.size());
    has_gradient.push_back(edges > 0);
    if (edges > 1) walk.level -= stage.value[v] * (edges - 1);
  }
  for (int place = static_cast<int>(stage.costs.size()) - 1; place >= 0; --place) {
    const LayerCosts& layer = stage.costs[place];
    walk.Reach(stage.data[place] + (fused ? layer.backward_peak : layer.backward_input_peak));
    walk.level += layer.carried - layer.output - layer.kept - stage.Released(pass, place);
    if (!fused) walk.level += layer.kept_for_weight;
    for (int v : plan.inputs[place]) {
      if (!has_gradient[v]) walk.level += stage.value[v];
      has_gradient[v] = true;
    }
  }
  return walk.peak;
}

Bytes BackwardWeightPeak(const StageBytes& stage) {
  Walk walk;
  for (int place = static_cast<int>(stage.costs.size()) - 1; place >= 0; --place) {
    walk.Reach(stage.data[place] + stage.costs[place].backward_weight_peak);
    walk.level -=
        stage.costs[place].kept_for_weight + stage.Released(StagePass::kBackwardWeight, place);
  }
  return walk.peak;
}

// Of gradients: one a use of a value.
Bytes GradientBytes(const ModelGraph& graph, const std::vector<int>& layers, TensorParallel split) {
  Bytes gradients;
  for (int i : layers) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      gradients += Bytes(4) * p.size_on(split);
    }
  }
  return gradients;
}

Bytes StatisticsBytes(const ModelGraph& graph, const std::vector<int>& layers) {
  Bytes statistics;
  for (int i : layers) {
    for (const ParameterSpec& p : graph.layers[i].statistics) statistics += Bytes(4) * p.size();
  }
  return statistics;
}

// Gradients of the values that only these layers hold: what copies of the stage sum. Values of a
// tie with other stages are summed with those.
Bytes OwnGradientBytes(const ModelGraph& graph, const ModelPartition& partition, int stage,
                       TensorParallel split) {
  std::set<std::string> elsewhere, values;
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    if (partition.stage_of_layer[i] == stage) continue;
    for (const ParameterSpec& p : graph.layers[i].parameters) elsewhere.insert(p.tie);
  }
  Bytes bytes;
  for (int i : partition.layers[stage]) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      if (!p.tie.empty() && elsewhere.count(p.tie) > 0) continue;
      if (values.insert(ValueName(p)).second) bytes += Bytes(4) * p.size_on(split);
    }
  }
  return bytes;
}

int64_t NumValues(const ModelGraph& graph, const std::vector<int>& layers, TensorParallel split) {
  std::set<std::string> values;
  int64_t n = 0;
  for (int i : layers) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      if (values.insert(ValueName(p)).second) n += p.size_on(split);
    }
  }
  return n;
}

// Where rows are split by tokens, a device's gradients of the parameters that all devices have
// whole are those of its own rows: the group sums them once a step.
std::vector<TensorCollective> SumsOfAStep(const ModelGraph& graph, const std::vector<int>& layers,
                                          TensorParallel split) {
  std::vector<TensorCollective> sums;
  if (!split.scatters_rows()) return sums;
  for (int i : layers) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      if (p.split_dimension < 0) sums.push_back({Collective::kAllReduce, Bytes(4) * p.size()});
    }
  }
  return sums;
}

// As one collective.
std::vector<TensorCollective> Together(const std::vector<TensorCollective>& sums) {
  Bytes bytes;
  for (const TensorCollective& sum : sums) bytes += sum.bytes;
  return {{Collective::kAllReduce, bytes}};
}

Nanoseconds TimeOf(Flops flops, FlopsPerSecond rate) {
  return Nanoseconds(std::llround(flops.value() / rate.value() * 1e9));
}

Nanoseconds MeasuredTime(const std::vector<Operation>& operations) {
  Nanoseconds sum;
  for (const Operation& o : operations) {
    if (o.kind == OperationKind::kMeasured) sum += o.time;
  }
  return sum;
}

// Flops of all layers at the rate, what was measured, and the group's collectives.
void Add(const StageCost::TensorTraffic& of_layer, StageCost::TensorTraffic* of_stage) {
  of_stage->forward += of_layer.forward;
  of_stage->backward_input += of_layer.backward_input;
  of_stage->backward_weight += of_layer.backward_weight;
}

StageCost PlainTimes(const ModelGraph& graph, const std::vector<int>& layers, int64_t samples,
                     TokenSlice slice, const StageCostOptions& options) {
  const TensorGroup& group = options.tensor;
  Flops forward, backward_input, backward_weight;
  StageCost cost;
  for (int i : layers) {
    const TensorShare share = ShareOf(graph.layers[i], samples, slice, group.split);
    forward += share.costs.forward;
    backward_input += share.costs.backward_input;
    backward_weight += share.costs.backward_weight;
    const auto beside = [&](const std::vector<Operation>& operations,
                            const std::vector<TensorCollective>& collectives) {
      return MeasuredTime(operations) + group.TimeOf(collectives, NumberType::kFp32);
    };
    cost.forward += beside(share.operations.forward, share.forward);
    cost.backward_input += beside(share.operations.backward_input, share.backward_input);
    cost.backward_weight += beside(share.operations.backward_weight, share.backward_weight);
    Add({group.TrafficOf(share.forward, NumberType::kFp32),
         group.TrafficOf(share.backward_input, NumberType::kFp32),
         group.TrafficOf(share.backward_weight, NumberType::kFp32), Bytes(0)},
        &cost.tensor_traffic);
  }
  cost.forward += TimeOf(forward, options.rate);
  cost.backward_input += TimeOf(backward_input, options.rate);
  cost.backward_weight += TimeOf(backward_weight, options.rate);
  const double values = static_cast<double>(NumValues(graph, layers, group.split));
  cost.step = TimeOf(Flops(values * options.step_flops_per_parameter), options.rate);
  return cost;
}

// What our stages do between layers: sums of the gradients of a value that several take, which
// compilers fuse into what makes the gradients, and copies of what leaves on several edges or stays
// as well.
absl::Status AddJoins(const StagePlan& plan, const StageBytes& bytes, const Machine& machine,
                      StageCost* cost) {
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const StagePlan::Value& value = plan.values[v];
    const int64_t numbers = bytes.value[v].value() / 4;
    const int gradients = static_cast<int>(value.consumers.size() + value.out_edges.size());
    if (gradients > 1) {
      PIPELAB_ASSIGN_OR_RETURN(
          const Nanoseconds sum,
          OperationTime(machine.device, machine.type,
                        OwnOperation(OperationKind::kElementwise, 3 * numbers)));
      cost->backward_input += sum * (gradients - 1);
    }
    if (value.copies(/*drop=*/false) > 0) {
      PIPELAB_ASSIGN_OR_RETURN(
          const Nanoseconds copy,
          OperationTime(machine.device, machine.type,
                        OwnOperation(OperationKind::kElementwise, 2 * numbers)));
      cost->forward += copy * value.copies(/*drop=*/false);
    }
  }
  return absl::OkStatus();
}

// The optimizer reads value, gradient and its own tensors, and writes all but the gradient, which
// (ours) is cleared in a pass of its own.
absl::StatusOr<Nanoseconds> OptimizerTime(const Machine& machine, int64_t values,
                                          int optimizer_tensors) {
  if (values == 0) return Nanoseconds(0);
  PIPELAB_ASSIGN_OR_RETURN(Nanoseconds time, StepTime(machine, values, 3 + 2 * optimizer_tensors));
  PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds clear,
                           OperationTime(machine.device, NumberType::kFp32,
                                         OwnOperation(OperationKind::kOptimizer, values)));
  return time + clear;
}

absl::StatusOr<StageCost> MachineTimes(const ModelGraph& graph, const ModelPartition& partition,
                                       int stage, int64_t samples, TokenSlice slice,
                                       const StageCostOptions& options) {
  const std::vector<int>& layers = partition.layers[stage];
  StageCost cost;
  for (int i : layers) {
    PIPELAB_ASSIGN_OR_RETURN(const LayerTimes times, TimesOf(graph.layers[i], *options.machine,
                                                             samples, slice, options.tensor));
    cost.forward += times.forward;
    cost.backward_input += times.backward_input;
    cost.backward_weight += times.backward_weight;
    Add(times.traffic, &cost.tensor_traffic);
  }
  const StagePlan plan = MakeStagePlan(graph, partition, stage);
  const TensorParallel split = options.tensor.split;
  PIPELAB_RETURN_IF_ERROR(
      AddJoins(plan, BytesOf(graph, plan, samples, slice, split), *options.machine, &cost));
  PIPELAB_ASSIGN_OR_RETURN(
      cost.step,
      OptimizerTime(*options.machine, NumValues(graph, layers, split), options.optimizer_tensors));
  return cost;
}

// Of bytes counted with 4 a number.
Bytes InNumbersOf(int64_t bytes_of_number, Bytes bytes) {
  return Bytes(bytes.value() / 4 * bytes_of_number);
}

// State stays as it is.
void SetNumberBytes(int64_t bytes_of_number, StageMemory* memory) {
  for (Bytes* bytes : memory->Activations()) {
    *bytes = InNumbersOf(bytes_of_number, *bytes);
  }
}

int64_t NumberBytes(const StageCostOptions& options) {
  return options.machine.has_value() ? BytesOf(options.machine->type) : 4;
}

absl::StatusOr<StageCost> CostOf(const ModelGraph& graph, const ModelPartition& partition,
                                 int stage, int64_t samples, TokenSlice slice,
                                 const StageCostOptions& options) {
  const std::vector<int>& layers = partition.layers[stage];
  StageCost cost;
  if (options.machine.has_value()) {
    PIPELAB_ASSIGN_OR_RETURN(cost, MachineTimes(graph, partition, stage, samples, slice, options));
  } else {
    cost = PlainTimes(graph, layers, samples, slice, options);
  }
  cost.recompute = cost.forward;
  const TensorParallel split = options.tensor.split;
  if (const auto sums = SumsOfAStep(graph, layers, split); !sums.empty()) {
    cost.step += options.tensor.TimeOf(Together(sums), NumberType::kFp32);
    cost.tensor_traffic.step = options.tensor.TrafficOf(sums, NumberType::kFp32);
  }
  cost.memory =
      ComputeStageMemory(graph, partition, stage, samples, slice, options.optimizer_tensors, split);
  SetNumberBytes(NumberBytes(options), &cost.memory);
  return cost;
}

}  // namespace

StageMemory ComputeStageMemory(const ModelGraph& graph, const ModelPartition& partition, int stage,
                               int64_t samples, TokenSlice slice, int optimizer_tensors,
                               TensorParallel split) {
  const StagePlan plan = MakeStagePlan(graph, partition, stage);
  const StageBytes bytes = BytesOf(graph, plan, samples, slice, split);
  StageMemory memory;
  for (const LayerCosts& layer : bytes.costs) {
    memory.kept += layer.kept;
    memory.kept_for_weight += layer.kept_for_weight;
    memory.kept_when_dropped += layer.kept_when_dropped;
    memory.carried += layer.carried;
  }
  for (int v = 0; v < static_cast<int>(plan.values.size()); ++v) {
    const bool in_edge = v < plan.num_in_edges;
    if (in_edge && !plan.values[v].kept()) memory.kept -= bytes.value[v];
    if (!in_edge && plan.values[v].kept()) memory.kept += bytes.value[v];
    if (plan.values[v].use == InputUse::kWeightGradient) memory.kept_for_weight += bytes.value[v];
  }
  const Walk forward = WalkForward(bytes, StagePass::kForward);
  const Walk recompute = WalkForward(bytes, StagePass::kRecompute);
  memory.forward_peak = forward.peak;
  memory.forward_peak_kept = forward.kept_at_peak;
  memory.forward_drop_peak = WalkForward(bytes, StagePass::kForwardDrop).peak;
  memory.recompute_peak = recompute.peak;
  memory.recompute_peak_kept = recompute.kept_at_peak;
  memory.backward_peak = BackwardPeak(bytes, StagePass::kBackward);
  memory.backward_input_peak = BackwardPeak(bytes, StagePass::kBackwardInput);
  memory.backward_weight_peak = BackwardWeightPeak(bytes);
  memory.statistics = StatisticsBytes(graph, plan.layers);
  const int64_t values = NumValues(graph, plan.layers, split);  // tied ones once
  const int masters = graph.width.bytes < 4 ? 1 : 0;
  memory.weight_bytes = graph.width.bytes;
  memory.weights = graph.width(values);
  memory.optimizer = Bytes(4) * values * (optimizer_tensors + masters);
  memory.state = memory.weights + GradientBytes(graph, plan.layers, split) + memory.optimizer +
                 memory.statistics;
  memory.gradients = OwnGradientBytes(graph, partition, stage, split);
  return memory;
}

absl::StatusOr<CostTable> ComputeStageCosts(const ModelGraph& graph,
                                            const ModelPartition& partition,
                                            int64_t micro_batch_samples,
                                            const StageCostOptions& options) {
  if (micro_batch_samples < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("micro-batches of ", micro_batch_samples, " samples"));
  }
  if (!(options.rate.value() > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a rate of ", options.rate.value(), " flop/s: must be above 0"));
  }
  const std::vector<int>& sizes = options.micro_batch_sizes;
  if (!sizes.empty() && static_cast<int>(sizes.size()) != partition.num_stages()) {
    return absl::InvalidArgumentError(absl::StrCat(sizes.size(), " sizes of micro-batches for ",
                                                   partition.num_stages(), " stages"));
  }
  const TensorParallel split = options.tensor.split;
  PIPELAB_RETURN_IF_ERROR(CheckTensorParallel(graph, split));
  std::vector<TokenSlice> slices;
  if (options.slices.size() > 1) {
    if (split.scatters_rows()) {
      return absl::InvalidArgumentError("--sequence_parallel: not with token slices");
    }
    PIPELAB_RETURN_IF_ERROR(CheckTakesSlices(graph));
    PIPELAB_ASSIGN_OR_RETURN(slices,
                             MakeTokenSlices(options.slices, graph.layers[0].output_shape[0]));
  }
  const auto costs_of = [&](TokenSlice slice) -> absl::StatusOr<SliceCosts> {
    SliceCosts costs;
    for (int s = 0; s < partition.num_stages(); ++s) {
      const int64_t samples = micro_batch_samples * (sizes.empty() ? 1 : sizes[s]);
      PIPELAB_ASSIGN_OR_RETURN(StageCost cost,
                               CostOf(graph, partition, s, samples, slice, options));
      costs.stages.push_back(cost);
    }
    for (int layer : partition.edge_layer) {
      costs.edge_bytes.push_back(
          InNumbersOf(NumberBytes(options),
                      CostsOf(graph.layers[layer], micro_batch_samples, slice, split).output));
    }
    return costs;
  };
  CostTable table;
  table.tensor_parallel = split.degree;
  PIPELAB_ASSIGN_OR_RETURN(SliceCosts whole, costs_of(TokenSlice()));
  table.stages = std::move(whole.stages);
  table.edge_bytes = std::move(whole.edge_bytes);
  for (const TokenSlice& slice : slices) {
    PIPELAB_ASSIGN_OR_RETURN(SliceCosts costs, costs_of(slice));
    table.slices.push_back(std::move(costs));
  }
  for (const LayerSpec& layer : graph.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      if (!p.tie.empty()) table.tie_bytes[p.tie] = Bytes(4) * p.size_on(split);
    }
  }
  return table;
}

}  // namespace pipelab
