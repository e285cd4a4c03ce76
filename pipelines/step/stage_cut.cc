#include "pipelines/step/stage_cut.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "models/specs/norm_spec.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/step/expert_exchange.h"
#include "pipelines/step/local_stages.h"
#include "pipelines/step/step.h"
#include "pipelines/step/vocabulary_parts.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

double NominalRate() { return StageCostOptions().rate.value(); }  // flops a second

Nanoseconds NominalTime(const std::vector<Operation>& operations, Flops flops) {
  return Nanoseconds(std::llround(flops.value() / NominalRate() * 1e9)) + MeasuredTime(operations);
}

LayerTimes NominalTimes(const LayerSpec& layer, int64_t samples, TensorParallel split) {
  const TensorShare share = ShareOf(layer, samples, TokenSlice(), split);
  LayerTimes times;
  times.forward = NominalTime(share.operations.forward, share.costs.forward);
  times.backward_input = NominalTime(share.operations.backward_input, share.costs.backward_input);
  times.backward_weight =
      NominalTime(share.operations.backward_weight, share.costs.backward_weight);
  return times;
}

// State, and the activations of one micro-batch, or of all where nothing is recomputed.
double MemoryOf(const LayerSpec& layer, const StepModel& model, const StepConfig& c,
                bool forward_only) {
  const LayerCosts costs = CostsOf(layer, c.micro_batch_size, TokenSlice(), c.split());
  double parameters = 0;
  for (const ParameterSpec& p : layer.parameters) {
    parameters += static_cast<double>(p.size_on(c.split()));
  }
  const double width = model.cluster == nullptr ? 4 : static_cast<double>(BytesOf(model.type));
  if (forward_only) return width * parameters;
  const double kept = static_cast<double>((costs.kept + costs.output).value()) / 4 * width;
  const StateNumbers& n = c.state;
  const int64_t state = n.weights + n.gradients + n.OptimizerBytes(model.optimizer_tensors);
  return static_cast<double>(state) * parameters +
         kept * (c.recomputes_forwards() ? 1 : c.micro_batches);
}

double FlopsOf(const LayerSpec& layer, int64_t samples, bool forward_only) {
  const LayerCosts costs = layer.costs(samples);
  if (forward_only) return costs.forward.value();
  return (costs.forward + costs.backward_input + costs.backward_weight).value();
}

// Without a cluster: flops, and for what was measured as many as take its time at the nominal rate.
// Layers of small networks take less than a nanosecond each.
double NominalCost(const LayerSpec& layer, const StepConfig& c, bool forward_only) {
  const TensorShare share = ShareOf(layer, c.micro_batch_size, TokenSlice(), c.split());
  const auto measured = [](const std::vector<Operation>& pass) {
    return ToSeconds(MeasuredTime(pass)) * NominalRate();
  };
  const LayerOperations& o = share.operations;
  if (forward_only) return share.costs.forward.value() + measured(o.forward);
  double cost =
      (share.costs.forward + share.costs.backward_input + share.costs.backward_weight).value();
  if (c.recomputes_forwards()) cost += share.costs.forward.value();
  for (const auto* pass : {&o.forward, &o.backward_input, &o.backward_weight}) {
    cost += measured(*pass);
  }
  return cost;
}

// The cost of the head of a stage that learns locally and ends with the layer.
absl::StatusOr<double> HeadCost(const StepModel& model, const StepConfig& config, int layer,
                                LocalHead kind) {
  absl::StatusOr<ModelGraph> graph = LocalHeadGraph(model.model->graph, layer, kind);
  if (!graph.ok()) return LearnsLocallyError(graph.status());
  GroupedModel head;
  head.graph = *std::move(graph);
  head.group_of_layer.assign(head.graph.layers.size(), 1);
  head.group_of_layer[0] = 0;  // the layer that it stands on
  StepModel on = model;
  on.model = &head;
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<UnitTime> times, UnitTimes(on, config));
  const std::vector<double> costs = UnitCosts(on, config, times, /*forward_only=*/false);
  return std::accumulate(costs.begin() + 1, costs.end(), 0.0);
}

// [unit] For stages that learn locally.
absl::StatusOr<std::vector<StageEnd>> StageEnds(const StepModel& model, const StepConfig& c,
                                                LocalHead kind) {
  const std::vector<int> unit_of_layer = UnitOfLayer(*model.model, c.cut);
  const std::vector<int> first = FirstLayersOfBlocks(model.model->graph);
  const int layers = static_cast<int>(unit_of_layer.size());
  std::vector<StageEnd> ends(unit_of_layer.back());
  for (int i = 0; i + 1 < layers; ++i) {
    if (unit_of_layer[i] == unit_of_layer[i + 1]) continue;
    StageEnd& end = ends[unit_of_layer[i]];
    // A unit that begins before that layer is no unit to begin with.
    const bool whole = first[i] == 0 || unit_of_layer[first[i] - 1] < unit_of_layer[first[i]];
    end.earliest = unit_of_layer[first[i]] + (whole ? 0 : 1);
    if (first[i] > i) continue;
    PIPELAB_ASSIGN_OR_RETURN(end.cost, HeadCost(model, c, i, kind));
  }
  ends.emplace_back();  // the model's last, which has its loss
  return ends;
}

}  // namespace

// Ranks c T: devices with the other tokens lie side by side, in groups of T.
static PathCost ContextPathOf(const StepModel& model, TensorParallel split) {
  if (split.context == 1 || split.exchange != ContextExchange::kHeads) return {};
  std::vector<int64_t> ranks(split.context);
  for (int64_t c = 0; c < split.context; ++c) ranks[c] = c * split.degree;
  return ExchangePath(*model.cluster, ranks, split.degree);
}

PathCost ExpertPathOf(const StepModel& model, const StepConfig& c) {
  const TensorParallel split = c.split();
  if (model.cluster == nullptr || split.experts == 1) return {};
  const RankGrid grid = GridOfStep(model, c, c.copies(), Bytes(0));
  const int64_t stride = split.expert_degree();
  std::vector<int64_t> ranks;
  int64_t groups = stride;  // between the farthest neighbours
  for (int64_t e = 0; e < split.experts; ++e) {
    const int64_t at = e * stride;  // rank t of copy d is d T + t
    ranks.push_back(grid.rank(0, at / split.degree) + at % split.degree);
    if (e > 0) groups = std::max(groups, ranks[e] - ranks[e - 1]);
  }
  absl::optional<RoutedRows> rows;
  if (split.once_per_node) rows = RowsOfExperts(model.model->graph);
  return ExchangePath(*model.cluster, ranks, groups, rows);
}

TensorGroup TensorGroupOf(const StepModel& model, const StepConfig& c) {
  return TensorGroupOf(model, c, ExpertPathOf(model, c));
}

TensorGroup TensorGroupOf(const StepModel& model, const StepConfig& c,
                          const PathCost& expert_path) {
  const TensorParallel split = c.split();
  TensorGroup group;
  TakeChoices(model, c, &group);
  if (model.cluster == nullptr) return group;
  group.hop = RingStep(*model.cluster, {split.degree, 1});
  group.context_hop = RingStep(*model.cluster, {split.context, split.degree});
  if (c.slice_exchange) {
    const RankNetwork ranks(model.cluster, GridOfStep(model, c, c.copies(), Bytes(0)));
    group.context_hop = ranks.Message(0, c.pipeline - 1);
  }
  group.context_path = ContextPathOf(model, split);
  group.expert_path = expert_path;
  return group;
}

void TakeChoices(const StepModel& model, const StepConfig& c, TensorGroup* group) {
  group->split = c.split();
  if (model.cluster == nullptr) return;
  group->overlapped = c.overlap_tensor && c.sequence_parallel;
  if (c.experts == 1) return;
  group->merged = MergedShare(c);
  group->merges = c.exchanges != Exchanges::kWaited;
  group->delayed_weights = c.exchanges == Exchanges::kBesideDelayed;
}

std::vector<int> UnitOfLayer(const GroupedModel& model, CutRule rule) {
  if (rule != CutRule::kLayers) return model.group_of_layer;
  std::vector<int> units(model.graph.layers.size());
  std::iota(units.begin(), units.end(), 0);
  return units;
}

std::vector<int> RebuiltBlocksOf(const StepModel& model) {
  const ModelGraph& graph = model.model->graph;
  std::vector<int> blocks = RebuiltBlocks(graph, model.model->group_of_layer);
  const int parts = model.vocabulary_parts, layers = static_cast<int>(blocks.size());
  if (parts == 0) return blocks;
  // The sum of the parts of the embedding, too, and the norm of the head.
  const int behind = layers - parts - 1;
  const int last = behind - (graph.layers[behind - 1].kind == kNorm ? 1 : 0);
  std::fill(blocks.begin(), blocks.begin() + parts + 1, -1);
  std::fill(blocks.begin() + last, blocks.end(), -1);
  return blocks;
}

absl::StatusOr<std::vector<UnitTime>> UnitTimes(const StepModel& model, const StepConfig& c) {
  const absl::optional<Machine> machine = model.machine();
  const TensorGroup tensor = TensorGroupOf(model, c);
  LayerTimes times;
  return UnitTimes(model, c, [&](int layer) -> absl::StatusOr<const LayerTimes*> {
    if (machine.has_value()) {
      PIPELAB_ASSIGN_OR_RETURN(times, TimesInGraph(model.model->graph, layer, *machine,
                                                   c.micro_batch_size, TokenSlice(), tensor));
    } else {
      times = NominalTimes(model.model->graph.layers[layer], c.micro_batch_size, c.split());
    }
    return &times;
  });
}

absl::StatusOr<std::vector<UnitTime>> UnitTimes(const StepModel& model, const StepConfig& c,
                                                TimesOfLayer times_of) {
  const std::vector<int> unit_of_layer = UnitOfLayer(*model.model, c.cut);
  const std::vector<int> blocks = c.recompute == Recompute::kBlocks
                                      ? RebuiltBlocksOf(model)
                                      : std::vector<int>(unit_of_layer.size());
  std::vector<UnitTime> units(unit_of_layer.empty() ? 0 : unit_of_layer.back() + 1);
  for (size_t i = 0; i < unit_of_layer.size(); ++i) {
    PIPELAB_ASSIGN_OR_RETURN(const LayerTimes* times, times_of(static_cast<int>(i)));
    UnitTime& unit = units[unit_of_layer[i]];
    unit.forward += times->forward;
    if (blocks[i] >= 0) unit.recompute += times->forward;
    unit.backward_input += times->backward_input;
    unit.backward_weight += times->backward_weight;
  }
  return units;
}

std::vector<double> UnitCosts(const StepModel& model, const StepConfig& c,
                              const std::vector<UnitTime>& times, bool forward_only,
                              const std::vector<int>& alike) {
  std::vector<double> costs(times.size());
  const bool by_time = c.cut == CutRule::kBlocks || c.cut == CutRule::kLayers;
  if (by_time && model.cluster != nullptr) {
    for (size_t u = 0; u < times.size(); ++u) {
      Nanoseconds all = times[u].forward;
      if (!forward_only) all += times[u].backward_input + times[u].backward_weight;
      if (c.recomputes_forwards()) all += times[u].recompute;
      costs[u] = static_cast<double>(all.value());
    }
    return costs;
  }
  const std::vector<int> unit_of_layer = UnitOfLayer(*model.model, c.cut);
  std::vector<double> of_layer(unit_of_layer.size());
  for (size_t i = 0; i < unit_of_layer.size(); ++i) {
    const LayerSpec& layer = model.model->graph.layers[i];
    const bool known = !alike.empty() && alike[i] < static_cast<int>(i);
    of_layer[i] = known                       ? of_layer[alike[i]]
                  : by_time                   ? NominalCost(layer, c, forward_only)
                  : c.cut == CutRule::kMemory ? MemoryOf(layer, model, c, forward_only)
                                              : FlopsOf(layer, c.micro_batch_size, forward_only);
    costs[unit_of_layer[i]] += of_layer[i];
  }
  return costs;
}

absl::StatusOr<std::vector<int>> CutUnits(const StepModel& model, const StepConfig& c,
                                          const std::vector<double>& all, int stages,
                                          const StageLearning& learning) {
  const int parts = model.vocabulary_parts, around = StagesAroundChain(parts);
  const int units = static_cast<int>(all.size()) - around;
  stages -= around;
  if (stages > units) {
    return absl::InvalidArgumentError(absl::StrCat(
        stages, " stages, but the model has ", units,
        c.cut == CutRule::kLayers ? " layers"
                                  : " blocks to cut between; cut=layers cuts anywhere"));
  }
  const std::vector<double> costs(all.begin() + parts, all.begin() + parts + units);
  std::vector<StageEnd> ends;
  if (learning.heads.has_value()) {
    PIPELAB_ASSIGN_OR_RETURN(ends, StageEnds(model, c, *learning.heads));
  }
  const absl::StatusOr<std::vector<int>> first = c.cut == CutRule::kFlopsVariance
                                                     ? PartitionChainByVariance(costs, stages, ends)
                                                     : PartitionChain(costs, stages, ends);
  if (absl::IsNotFound(first.status())) {
    return absl::InvalidArgumentError(absl::StrCat(
        model.model->graph.name, " has no cuts into ", stages,
        " stages that learn locally: in each, some layer would get no gradient; use fewer stages",
        c.cut == CutRule::kLayers ? "" : " or cut=layers"));
  }
  PIPELAB_RETURN_IF_ERROR(first.status());
  std::vector<int> sizes(parts, 1);
  for (int size : StageSizes(*first, units)) sizes.push_back(size);
  sizes.resize(sizes.size() + around - parts, 1);
  return sizes;
}

std::vector<int> StageOfLayer(const std::vector<int>& unit_of_layer,
                              const std::vector<int>& units_of_stage) {
  std::vector<int> stage_of_unit;
  for (size_t s = 0; s < units_of_stage.size(); ++s) {
    stage_of_unit.insert(stage_of_unit.end(), units_of_stage[s], static_cast<int>(s));
  }
  std::vector<int> stages;
  for (const int unit : unit_of_layer) stages.push_back(stage_of_unit[unit]);
  return stages;
}

}  // namespace pipelab
