#include "pipelines/cost/stage_costs.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/graph/context_parallel.h"
#include "models/graph/expert_parallel.h"
#include "models/graph/model_slices.h"
#include "pipelines/cost/stage_bytes.h"
#include "pipelines/cost/stage_plan.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

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

void AddTrafficOfLayer(const StageCost::TensorTraffic& of_layer,
                       StageCost::TensorTraffic* of_stage) {
  of_stage->forward += of_layer.forward;
  of_stage->backward_input += of_layer.backward_input;
  of_stage->backward_weight += of_layer.backward_weight;
}

// Flops of all layers at the rate, what was measured, and the group's collectives.
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
                            const std::vector<TensorCollective>& collectives,
                            const std::vector<TensorCollective>& context) {
      Flops attention;
      for (const Operation& o : operations) {
        if (o.kind == OperationKind::kAttention) attention += o.flops;
      }
      return MeasuredTime(operations) + group.TimeOf(collectives, NumberType::kFp32) +
             group.ContextGroup().TimeOf(context, NumberType::kFp32,
                                         pipelab::TimeOf(attention, options.rate));
    };
    cost.forward += beside(share.operations.forward, share.forward, share.context.forward);
    cost.backward_input +=
        beside(share.operations.backward_input, share.backward_input, share.context.backward_input);
    cost.backward_weight += beside(share.operations.backward_weight, share.backward_weight,
                                   share.context.backward_weight);
    AddTrafficOfLayer(group.TrafficOf(share, NumberType::kFp32), &cost.tensor_traffic);
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
absl::Status AddJoins(const StageBytes& bytes, const Machine& machine, StageCost* cost) {
  const StagePlan& plan = bytes.plan;
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const StagePlan::Value& value = plan.values[v];
    const int64_t numbers = bytes.value[v].value() / 4;
    const int gradients = value.shares + value.back_edges;
    if (gradients > 1) {
      PIPELAB_ASSIGN_OR_RETURN(
          const Nanoseconds sum,
          OperationTime(machine.device, machine.type,
                        OwnOperation(OperationKind::kElementwise, 3 * numbers)));
      cost->backward_input += sum * (gradients - 1);
    }
    const int copies = value.copies(/*drop=*/plan.rebuilds);
    if (copies > 0) {
      PIPELAB_ASSIGN_OR_RETURN(
          const Nanoseconds copy,
          OperationTime(machine.device, machine.type,
                        OwnOperation(OperationKind::kElementwise, 2 * numbers)));
      cost->forward += copy * copies;
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

// The cost of the layers alone, one after the other.
absl::StatusOr<StageCost> LayersOnMachine(const ModelGraph& graph, const std::vector<int>& layers,
                                          int64_t samples, TokenSlice slice,
                                          const StageCostOptions& options) {
  StageCost cost;
  for (int i : layers) {
    LayerTimes times;
    if (options.layer_times && slice.whole()) {
      PIPELAB_ASSIGN_OR_RETURN(const LayerTimes* known, options.layer_times(i));
      times = *known;
    } else {
      PIPELAB_ASSIGN_OR_RETURN(
          times, TimesInGraph(graph, i, *options.machine, samples, slice, options.tensor));
    }
    cost.forward += times.forward;
    cost.backward_input += times.backward_input;
    cost.backward_weight += times.backward_weight;
    cost.merged_saving += times.merged_saving;
    AddTrafficOfLayer(times.traffic, &cost.tensor_traffic);
  }
  return cost;
}

absl::StatusOr<StageCost> MachineTimes(const ModelGraph& graph, const StageBytes& bytes,
                                       int64_t samples, TokenSlice slice,
                                       const StageCostOptions& options) {
  const std::vector<int>& layers = bytes.plan.layers;
  PIPELAB_ASSIGN_OR_RETURN(StageCost cost, LayersOnMachine(graph, layers, samples, slice, options));
  PIPELAB_RETURN_IF_ERROR(AddJoins(bytes, *options.machine, &cost));
  PIPELAB_ASSIGN_OR_RETURN(
      cost.step, OptimizerTime(*options.machine, NumValues(graph, layers, options.tensor.split),
                               options.optimizer_tensors));
  return cost;
}

// Scales bytes that were counted with 4 a number.
Bytes InNumbersOf(int64_t bytes_of_number, Bytes bytes) {
  return Bytes(bytes.value() / 4 * bytes_of_number);
}

// State stays as it is.
void SetNumberBytes(int64_t bytes_of_number, StageMemory* memory) {
  for (Bytes* bytes : memory->Activations()) {
    *bytes = InNumbersOf(bytes_of_number, *bytes);
  }
}

// Scales the state, which was counted with 4 bytes a number.
void SetStateNumbers(const StateNumbers& n, StageMemory* m) {
  if (!n.narrow() || m->numbers.narrow()) return;  // as counted, or the model's own
  const Bytes gradients = m->state - m->statistics - m->weights - m->optimizer;
  m->optimizer += m->weights;
  m->weights = InNumbersOf(n.weights, m->weights);
  m->gradients = InNumbersOf(n.gradients, m->gradients);
  m->expert_gradients = InNumbersOf(n.gradients, m->expert_gradients);
  m->state = m->weights + InNumbersOf(n.gradients, gradients) + m->optimizer + m->statistics;
  m->numbers = n;
}

int64_t NumberBytes(const StageCostOptions& options) {
  return options.machine.has_value() ? BytesOf(options.machine->type) : 4;
}

// That exchange statistics of a batch normalisation; 1: none does.
int64_t Copies(const StageCostOptions& options, int stage) {
  const bool together = options.batch_norm == BatchNormCopies::kSynchronised;
  return together && !options.group_sizes.empty() ? options.group_sizes[stage] : 1;
}

// What the devices of a group exchange is part of their layers' memory; `with` is where such a
// graph is made, if there is need of one.
const ModelGraph& WithExchange(const ModelGraph& graph, const ModelPartition& partition,
                               const StageCostOptions& options, ModelGraph* with) {
  for (int stage = 0; stage < partition.num_stages(); ++stage) {
    for (int layer : partition.layers[stage]) {
      if (Copies(options, stage) == 1 || !HasBatchNorm(graph.layers[layer])) continue;
      if (with->layers.empty()) *with = graph;
      AddExchange(Copies(options, stage), &with->layers[layer]);
    }
  }
  return with->layers.empty() ? graph : *with;
}

absl::StatusOr<StageCost> LayersAlone(const ModelGraph& graph, const std::vector<int>& layers,
                                      int64_t samples, TokenSlice slice,
                                      const StageCostOptions& options) {
  if (options.machine.has_value()) return LayersOnMachine(graph, layers, samples, slice, options);
  return PlainTimes(graph, layers, samples, slice, options);
}

// The weight parts of layers that are not split come with their input parts: a fused backward takes
// as long as before.
absl::Status MoveUnsplit(const ModelGraph& graph, const ModelPartition& partition, int stage,
                         int64_t samples, TokenSlice slice, const StageCostOptions& options,
                         StageCost* cost) {
  std::vector<int> unsplit;
  for (int i : partition.layers[stage]) {
    if (!partition.Splits(i)) unsplit.push_back(i);
  }
  if (unsplit.empty()) return absl::OkStatus();
  PIPELAB_ASSIGN_OR_RETURN(const StageCost whole,
                           LayersAlone(graph, unsplit, samples, slice, options));
  cost->backward_input += whole.backward_weight;
  cost->backward_weight -= whole.backward_weight;
  cost->tensor_traffic.backward_input += whole.tensor_traffic.backward_weight;
  cost->tensor_traffic.backward_weight -= whole.tensor_traffic.backward_weight;
  return absl::OkStatus();
}

// A stage that rebuilds blocks does so within its backwards: `recompute` is that part of
// backward_input, and the collectives of these forwards come again.
absl::Status RebuildInBackward(const ModelGraph& graph, const ModelPartition& partition, int stage,
                               int64_t samples, const StageCostOptions& options, StageCost* cost) {
  if (partition.block_of_layer.empty()) return absl::OkStatus();
  std::vector<int> rebuilt;
  for (int i : partition.layers[stage]) {
    if (partition.block_of_layer[i] >= 0) rebuilt.push_back(i);
  }
  PIPELAB_ASSIGN_OR_RETURN(const StageCost again,
                           LayersAlone(graph, rebuilt, samples, {}, options));
  cost->recompute = again.forward;
  cost->backward_input += again.forward;
  cost->tensor_traffic.backward_input += again.tensor_traffic.forward;
  for (int i : rebuilt) {
    const TensorCollectives exchange = StatisticsExchange(graph.layers[i], Copies(options, stage));
    std::vector<TensorCollective>* all = &cost->statistics.backward_input;
    all->insert(all->end(), exchange.forward.begin(), exchange.forward.end());
  }
  return absl::OkStatus();
}

absl::StatusOr<StageCost> CostOf(const ModelGraph& graph, const ModelPartition& partition,
                                 int stage, int64_t samples, TokenSlice slice,
                                 const StageCostOptions& options) {
  const std::vector<int>& layers = partition.layers[stage];
  const TensorParallel split = options.tensor.split;
  const StagePlan plan = MakeStagePlan(graph, partition, stage);
  const StageBytes bytes = BytesOf(graph, plan, samples, slice, split);
  StageCost cost;
  if (options.machine.has_value()) {
    PIPELAB_ASSIGN_OR_RETURN(cost, MachineTimes(graph, bytes, samples, slice, options));
  } else {
    cost = PlainTimes(graph, layers, samples, slice, options);
  }
  PIPELAB_RETURN_IF_ERROR(MoveUnsplit(graph, partition, stage, samples, slice, options, &cost));
  cost.recompute = cost.forward;
  PIPELAB_RETURN_IF_ERROR(RebuildInBackward(graph, partition, stage, samples, options, &cost));
  if (const auto sums = SumsOfAStep(graph, layers, split); !sums.empty()) {
    cost.step += options.tensor.TimeOf(Together(sums), NumberType::kFp32);
    cost.tensor_traffic.step = options.tensor.TrafficOf(sums, NumberType::kFp32);
  }
  for (int i : layers) {
    const TensorCollectives exchange = StatisticsExchange(graph.layers[i], Copies(options, stage));
    for (const auto& [all, more] :
         {std::make_pair(&cost.statistics.forward, &exchange.forward),
          std::make_pair(&cost.statistics.backward_input, &exchange.backward_input)}) {
      all->insert(all->end(), more->begin(), more->end());
    }
  }
  cost.memory = MemoryOf(graph, partition, stage, bytes, options.optimizer_tensors, split);
  SetNumberBytes(NumberBytes(options), &cost.memory);
  SetStateNumbers(options.state, &cost.memory);
  return cost;
}

absl::Status CheckSizes(const std::vector<int>& sizes, const char* what, int stages) {
  if (!sizes.empty() && static_cast<int>(sizes.size()) != stages) {
    return absl::InvalidArgumentError(
        absl::StrCat(sizes.size(), " ", what, " for ", stages, " stages"));
  }
  for (int size : sizes) {
    if (size >= 1) continue;
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", size, " must be at least 1"));
  }
  return absl::OkStatus();
}

// Samples of the fullest member of the stage's group.
int64_t DeviceSamples(const StageCostOptions& options, int stage, int64_t micro_batch_size) {
  const int64_t size = options.micro_batch_sizes.empty() ? 1 : options.micro_batch_sizes[stage];
  const int64_t devices = options.group_sizes.empty() ? 1 : options.group_sizes[stage];
  return (micro_batch_size * size + devices - 1) / devices;
}

// Where a parameter's part of a device becomes its weight and its gradient by casts, products have
// no sums to add to.
void AddGradientBuffer(const ParameterSpec& p, const StageCostOptions& options,
                       std::vector<Bytes>* buffers) {
  if (p.gradient_buffer < 0 || options.state.cast) return;
  const size_t number = static_cast<size_t>(p.gradient_buffer);
  if (buffers->size() <= number) buffers->resize(number + 1);
  Bytes& buffer = (*buffers)[number];
  buffer = std::max(buffer, Bytes(NumberBytes(options)) * p.product_on(options.tensor.split));
}

}  // namespace

void StageCostOptions::TakeSizes(const Schedule& schedule) {
  micro_batch_sizes.clear();
  group_sizes.clear();
  for (int stage = 0; stage < schedule.num_stages(); ++stage) {
    micro_batch_sizes.push_back(schedule.MicroBatchSize(stage));
    group_sizes.push_back(schedule.GroupSize(stage));
  }
}

absl::StatusOr<StageCost> ComputeStageCost(const ModelGraph& graph, const ModelPartition& partition,
                                           int stage, int64_t micro_batch_size, TokenSlice slice,
                                           const StageCostOptions& options) {
  return CostOf(graph, partition, stage, DeviceSamples(options, stage, micro_batch_size), slice,
                options);
}

absl::StatusOr<CostTable> ComputeStageCosts(const ModelGraph& model,
                                            const ModelPartition& partition,
                                            int64_t micro_batch_size,
                                            const StageCostOptions& options, StageCostMemo* memo) {
  if (micro_batch_size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("micro-batches of ", micro_batch_size, " samples"));
  }
  if (!(options.rate.value() > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a rate of ", options.rate.value(), " flop/s: must be above 0"));
  }
  PIPELAB_RETURN_IF_ERROR(
      CheckSizes(options.micro_batch_sizes, "sizes of micro-batches", partition.num_stages()));
  PIPELAB_RETURN_IF_ERROR(
      CheckSizes(options.group_sizes, "sizes of groups", partition.num_stages()));
  ModelGraph with_exchange;
  const ModelGraph& graph = WithExchange(model, partition, options, &with_exchange);
  const TensorParallel split = options.tensor.split;
  PIPELAB_RETURN_IF_ERROR(CheckTensorParallel(graph, split));
  PIPELAB_RETURN_IF_ERROR(CheckContextParallel(graph, split));
  // Copies are not known here.
  PIPELAB_RETURN_IF_ERROR(CheckExpertParallel(graph, split, split.expert_copies()));
  std::vector<TokenSlice> slices;
  if (options.slices.size() > 1) {
    if (split.context > 1) {
      return absl::InvalidArgumentError("--context_parallel: not with token slices");
    }
    if (!partition.block_of_layer.empty()) {
      return absl::InvalidArgumentError("recompute=blocks: not with token slices; give full");
    }
    PIPELAB_ASSIGN_OR_RETURN(
        slices, SlicesOfModel(graph, options.slices, split.scatters_rows() ? split.degree : 1));
  }
  if (!slices.empty() || !options.group_sizes.empty() || !options.micro_batch_sizes.empty()) {
    memo = nullptr;
  }
  const auto stage_of = [&](int stage, TokenSlice slice) -> absl::StatusOr<StageCost> {
    StageCostMemo::Key key;
    if (memo != nullptr) {
      key = memo->KeyOf(graph, partition, stage);
      if (const StageCost* known = memo->Find(key)) return *known;
    }
    PIPELAB_ASSIGN_OR_RETURN(StageCost cost, ComputeStageCost(graph, partition, stage,
                                                              micro_batch_size, slice, options));
    if (memo != nullptr) memo->Add(key, cost);
    return cost;
  };
  const auto costs_of = [&](TokenSlice slice) -> absl::StatusOr<SliceCosts> {
    SliceCosts costs;
    for (int s = 0; s < partition.num_stages(); ++s) {
      PIPELAB_ASSIGN_OR_RETURN(StageCost cost, stage_of(s, slice));
      costs.stages.push_back(std::move(cost));
    }
    for (int layer : partition.edge_layer) {
      costs.edge_bytes.push_back(
          InNumbersOf(NumberBytes(options),
                      CostsOf(graph.layers[layer], micro_batch_size, slice, split).output));
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
      AddGradientBuffer(p, options, &table.gradient_buffers);
      if (p.tie.empty()) continue;
      table.tie_bytes[p.tie] = Bytes(options.state.gradients) * p.size_on(split);
    }
  }
  return table;
}

}  // namespace pipelab
