#include "pipelines/step/step.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "models/graph/context_parallel.h"
#include "models/graph/expert_parallel.h"
#include "models/graph/model_slices.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/cost/exchange_costs.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/ir/atomic_pairs.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/schedules/schemes.h"
#include "pipelines/sim/simulate.h"
#include "pipelines/step/divided_vocabulary.h"
#include "pipelines/step/execution.h"
#include "pipelines/step/execution_costs.h"
#include "pipelines/step/expert_exchange.h"
#include "pipelines/step/local_stages.h"
#include "pipelines/step/recompute_gaps.h"
#include "pipelines/step/stage_cut.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status CheckDevices(const StepModel& model, const StepConfig& c) {
  for (const auto& [key, value] : {std::make_pair("P", c.pipeline), std::make_pair("T", c.tensor),
                                   std::make_pair("C", c.context), std::make_pair("D", c.data)}) {
    if (value < 1) {
      return absl::InvalidArgumentError(absl::StrCat(key, "=", value, ": must be at least 1"));
    }
  }
  PIPELAB_RETURN_IF_ERROR(CheckShards(c.sharding, c.shards, c.copies()));
  PIPELAB_RETURN_IF_ERROR(CheckTensorParallel(model.model->graph, c.split(), "T", "sequence"));
  PIPELAB_RETURN_IF_ERROR(CheckContextParallel(model.model->graph, c.split(), "C"));
  PIPELAB_RETURN_IF_ERROR(CheckExpertParallel(model.model->graph, c.split(), c.copies(), "E"));
  PIPELAB_RETURN_IF_ERROR(CheckExchanges(model.model->graph, c));
  PIPELAB_RETURN_IF_ERROR(CheckShards(c.sharding, c.shards, c.copies(), c.split().expert_copies()));
  if (model.cluster == nullptr || c.devices() <= model.cluster->max_devices()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "P=", c.pipeline, " x T=", c.tensor, c.context > 1 ? absl::StrCat(" x C=", c.context) : "",
      " x D=", c.data, " is ", c.devices(), " devices; cluster ", model.cluster->name, " has ",
      model.cluster->max_devices()));
}

// The options for a program of parts that say how large their micro-batches are.
StageCostOptions CostOptionsOf(const StepParts& parts) {
  const StepModel& model = *parts.model;
  StageCostOptions options;
  options.machine = model.machine();
  options.optimizer_tensors = model.optimizer_tensors;
  options.state = parts.config.state;
  options.step_flops_per_parameter = model.step_flops_per_parameter;
  options.tensor = TensorGroupOf(model, parts.config);
  options.slices = parts.slices;
  options.batch_norm = parts.config.batch_norm;
  options.TakeSizes(parts.schedule);
  return options;
}

absl::StatusOr<CostTable> CostsOf(const StepParts& parts) {
  if (parts.costs != nullptr) {
    CostTable costs = *parts.costs;
    for (Bytes& bytes : costs.edge_bytes) bytes = bytes * parts.members;
    for (SliceCosts& slice : costs.slices) {
      for (Bytes& bytes : slice.edge_bytes) bytes = bytes * parts.members;
    }
    return costs;
  }
  return ComputeStageCosts(parts.model->model->graph, *parts.partition, parts.micro_batch_size,
                           CostOptionsOf(parts));
}

// A chain's edges, which the model does not have, carry nothing.
void AddEmptyEdges(size_t edges, CostTable* costs) {
  costs->edge_bytes.resize(edges);
  if (!costs->edge_latency.empty()) costs->edge_latency.resize(edges);
  for (SliceCosts& slice : costs->slices) slice.edge_bytes.resize(edges);
}

// Copies meet within their passes, as many as there are.
bool HasBatchNorms(const StepModel& model) {
  const std::vector<LayerSpec>& layers = model.model->graph.layers;
  return std::any_of(layers.begin(), layers.end(), HasBatchNorm);
}

// Devices of the program for so many copies that do the same.
int Folded(const StepModel& model, int copies) {
  return model.fold_data && !HasBatchNorms(model) && copies % 2 == 0 ? 2 : copies;
}

// One sample through everything, with room for what else a step does and for slow networks.
double MostOfASample(const StepModel& model) {
  const absl::optional<Machine> machine = model.machine();
  double nanoseconds = 1, bytes = 1;
  for (const LayerSpec& layer : model.model->graph.layers) {
    const LayerCosts costs = layer.costs(1);
    for (Bytes b : {costs.output, costs.kept, costs.forward_peak, costs.backward_peak}) {
      bytes += static_cast<double>(b.value());
    }
    if (!machine.has_value()) {
      const Flops flops = costs.forward + costs.backward_input + costs.backward_weight;
      nanoseconds += flops.value();
      const LayerOperations o = layer.operations(1, TokenSlice());
      for (const auto* pass : {&o.forward, &o.backward_input, &o.backward_weight}) {
        nanoseconds += static_cast<double>(MeasuredTime(*pass).value());
      }
      continue;
    }
    const auto times = TimesOf(layer, *machine, 1);
    if (!times.ok()) continue;  // who needs them says so
    for (Nanoseconds t : {times->forward, times->backward_input, times->backward_weight}) {
      nanoseconds += static_cast<double>(t.value());
    }
  }
  return std::max(nanoseconds, bytes);
}

bool IsEven(const Schedule& schedule) {
  for (int stage = 1; stage < schedule.num_stages(); ++stage) {
    if (schedule.GroupSize(stage) != schedule.GroupSize(0)) return false;
  }
  return true;
}

absl::Status CheckPublishedOrder(const StepConfig& c) {
  if (!c.published_order) return absl::OkStatus();
  StepConfig timed = c;
  timed.published_order = false;
  if (StepCache::ChoosesOrder(timed)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("published: ", c.scheme, " has one order whatever passes take; leave it out"));
}

// Gradients that are sharded are put together for runs of passes with weight parts alone.
absl::Status CheckSplitHead(StepCache* cache, const Schedule& schedule, const StepConfig& c) {
  const bool splits = cache->SplitsBackwards(c, schedule);
  if (c.split_head && !splits) {
    return absl::InvalidArgumentError(
        absl::StrCat("split_head: ", c.scheme, " does not split backwards; leave it out"));
  }
  PIPELAB_ASSIGN_OR_RETURN(const bool whole_head, cache->LeavesHeadWhole(c));
  const bool sharded = c.sharing() > 1 && ShardsGradients(c.sharding);
  if (!splits || !whole_head || !sharded) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("sharding=", ShardingName(c.sharding),
                   ": gradients come together for weight parts alone, so a schedule that splits "
                   "backwards must split the head's, too; give split_head as well"));
}

// That nothing is recomputed twice.
absl::Status CheckRebuilds(const Schedule& schedule, const StepConfig& c) {
  for (const bool recomputed : schedule.RecomputedStages()) {
    if (!recomputed) continue;
    return absl::InvalidArgumentError(absl::StrCat("recompute=blocks: the schedule of ", c.scheme,
                                                   " recomputes whole stages already"));
  }
  return absl::OkStatus();
}

// The schedule of one copy, for the members of a group.
absl::StatusOr<Schedule> ScheduleFor(StepCache* cache, const StepConfig& c, int members) {
  PIPELAB_ASSIGN_OR_RETURN(const Schedule* one, cache->ScheduleOf(c));
  Schedule schedule = *one;
  ReplaceDevicesByGroups(members, &schedule);
  return schedule;
}

// For what the schedule offloads.
absl::Status AddHostLink(const ClusterSpec& cluster, const Program& program, CostTable* costs) {
  if (cluster.host_link.has_value()) {
    costs->host_bandwidth = cluster.host_link->Share();
    return absl::OkStatus();
  }
  for (const std::vector<Action>& list : program.schedule.order) {
    for (const Action& a : list) {
      if (!IsHostTransfer(a.kind)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "--cluster=", cluster.name, ": has no host_link, and ", program.schedule.name,
          " offloads; add one to its file, such as {\"bandwidth\": \"12 GB/s\"}"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCountable(const StepModel& model, int64_t micro_batch_size,
                            int64_t micro_batches) {
  constexpr double kMost = 9e17;
  if (micro_batch_size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("b=", micro_batch_size, ": must be at least 1"));
  }
  const double most = kMost / MostOfASample(model) / static_cast<double>(micro_batches);
  if (static_cast<double>(micro_batch_size) <= most) return absl::OkStatus();
  if (most < 1) {
    return TooLong(absl::StrCat("a step of ", model.model->graph.name, " with b=1 and M=",
                                micro_batches, " must fit 63 bits of nanoseconds and of bytes"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("b=", micro_batch_size, ": must be at most ", static_cast<int64_t>(most),
                   " with M=", micro_batches, " of ", model.model->graph.name,
                   ": a step must fit 63 bits of nanoseconds and of bytes"));
}

Bytes LargestMessage(const CostTable& costs) {
  Bytes largest;
  for (const Bytes bytes : costs.edge_bytes) largest = std::max(largest, bytes);
  return largest;
}

RankGrid GridOfStep(const StepModel& model, const StepConfig& c, int members,
                    Bytes largest_message) {
  RankGrid grid;
  grid.pipeline = c.pipeline;
  grid.tensor = c.tensor;
  grid.data = c.copies();
  grid.context = c.context;
  grid.shards = c.sharing();
  grid.experts = c.split().expert_copies();
  grid.order = c.ranks;
  grid.members = members;
  if (c.shards > 0) grid.set_members = Folded(model, c.shards);
  grid.divided_messages = c.divided_messages();
  grid.largest_message = largest_message;
  grid.message_calls = (c.execution & kGroupedCalls) != 0;
  grid.type = c.state.narrow() ? NumberType::kFp32 : model.type;  // bytes as they are
  return grid;
}

absl::StatusOr<std::vector<int64_t>> ChooseSlices(const ModelGraph& graph, const Schedule& schedule,
                                                  const std::vector<int64_t>& lengths,
                                                  TensorParallel split) {
  const int slices = schedule.num_slices;
  if (lengths.empty()) {
    if (slices == 1) return lengths;
    return EqualSlicesOfModel(graph, slices, split.scatters_rows() ? split.degree : 1);
  }
  PIPELAB_RETURN_IF_ERROR(CheckTakesSlices(graph));
  if (static_cast<int>(lengths.size()) != slices) {
    return absl::InvalidArgumentError(absl::StrCat("token slices of ", absl::StrJoin(lengths, ","),
                                                   " tokens, but the schedule has ", slices));
  }
  return lengths;
}

int MembersOf(const StepModel& model, const StepConfig& c) {
  return Folded(model, c.sharing()) * Folded(model, c.copies() / c.sharing());
}

LoweringOptions LoweringOf(const StepConfig& c) {
  LoweringOptions lowering;
  lowering.sharding = c.sharding;
  lowering.shards = c.shards;
  lowering.expert_copies = static_cast<int>(c.split().expert_copies());
  lowering.residency = c.residency;
  lowering.slice_exchange = c.slice_exchange;
  lowering.overlap = c.overlap_data && ShardsGradients(c.sharding);
  lowering.eager_reductions = c.overlap_data;
  lowering.calls = CallsOf(c);
  return lowering;
}

absl::StatusOr<Step> AssembleStep(StepParts parts) {
  const StepModel& model = *parts.model;
  const StepConfig& c = parts.config;
  Step step;
  step.config = c;
  step.partition = *parts.partition;
  step.slices = parts.slices;
  step.members = parts.members;
  LoweringOptions lowering = std::move(parts.lowering);
  PIPELAB_ASSIGN_OR_RETURN(
      parts.schedule,
      WithStages(std::move(parts.schedule),
                 std::exchange(lowering.stages, absl::nullopt).value_or(parts.partition->stages)));
  PIPELAB_ASSIGN_OR_RETURN(step.costs, CostsOf(parts));
  if (c.vocabulary_exchange == VocabularyExchange::kCollectives) {
    PriceAsCollectives(parts.schedule, c.pipeline, &step.costs);
  }
  step.costs.overlap = c.overlap_pipeline;
  step.costs.steady_overlap = c.steady_overlap;
  step.costs.overlap_collectives = c.overlap_data;
  step.costs.divided_messages = c.divided_messages();
  if (lowering.ties.empty()) lowering.ties = StageTies(model.model->graph, *parts.partition);
  absl::optional<StageCostOptions> exchanges;
  if (lowering.slice_exchange) exchanges = CostOptionsOf(parts);
  PIPELAB_ASSIGN_OR_RETURN(step.program, Lower(std::move(parts.schedule), lowering));
  if (exchanges.has_value()) {
    PIPELAB_RETURN_IF_ERROR(AddExchangeCosts(model.model->graph, *parts.partition,
                                             parts.micro_batch_size, *exchanges, step.program,
                                             &step.costs));
  }
  if (step.program.schedule.merges_passes) PairForwardBackward(&step.program);
  step.program.devices_per_member =
      lowering.shards > 0 && c.shards > 0 ? c.shards / lowering.shards : c.copies() / parts.members;
  AddEmptyEdges(step.program.schedule.stages.edges.size(), &step.costs);
  if (model.cluster != nullptr) {
    step.device_memory = model.cluster->device.memory.value;
    const auto& set_up = model.cluster->device.step_set_up;
    if (set_up.has_value()) step.set_up = set_up->value;
    step.costs.collectives_at_wait = model.cluster->collectives_at_wait;
    PIPELAB_RETURN_IF_ERROR(AddHostLink(*model.cluster, step.program, &step.costs));
    const Bytes largest(LargestMessage(step.costs).value() / parts.members);
    const RankNetwork ranks(model.cluster, GridOfStep(model, c, parts.members, largest));
    step.costs.network = ranks.Of(step.program);
    if (c.vocabulary_exchange == VocabularyExchange::kCollectives) {
      AddCollectiveLatency(step.program.schedule.stages, c,
                           {ranks.PipelineRing().latency, ranks.CallOverhead()}, &step.costs);
    }
    AddExecutionCosts(ranks, model, c, &step.costs);
  }
  return step;
}

absl::StatusOr<Step> BuildStep(StepCache* whole, const StepConfig& config) {
  const StepModel& model = whole->model();
  PIPELAB_ASSIGN_OR_RETURN(const StepConfig c, whole->SizedConfig(config));
  PIPELAB_ASSIGN_OR_RETURN(StepCache * cache, whole->CacheOf(c));
  PIPELAB_RETURN_IF_ERROR(CheckDevices(model, c));
  PIPELAB_RETURN_IF_ERROR(CheckExecution(c));
  PIPELAB_RETURN_IF_ERROR(CheckRebuiltBlocks(c));
  PIPELAB_RETURN_IF_ERROR(CheckPublishedOrder(c));
  PIPELAB_RETURN_IF_ERROR(CheckCountable(model, c.micro_batch_size * c.data, c.micro_batches));
  StepParts parts;
  PIPELAB_ASSIGN_OR_RETURN(parts.model, cache->ModelOf(c));
  parts.config = c;
  parts.members = MembersOf(model, c);
  PIPELAB_ASSIGN_OR_RETURN(parts.schedule, ScheduleFor(cache, c, parts.members));
  PIPELAB_RETURN_IF_ERROR(CheckSplitHead(cache, parts.schedule, c));
  if (c.recompute == Recompute::kBlocks) {
    PIPELAB_RETURN_IF_ERROR(CheckRebuilds(parts.schedule, c));
  }
  const OwnSchedule* own = whole->OwnOf(c.scheme);
  PIPELAB_ASSIGN_OR_RETURN(
      parts.slices, ChooseSlices(model.model->graph, parts.schedule,
                                 own == nullptr ? std::vector<int64_t>() : own->slices, c.split()));
  PIPELAB_ASSIGN_OR_RETURN(const StepStages stages,
                           cache->StagesOf(c, parts.schedule.num_stages(), parts.slices));
  parts.partition = stages.partition;
  StepModel with_heads = *parts.model;
  if (stages.with_heads != nullptr) {
    with_heads.model = stages.with_heads;
    parts.model = &with_heads;
  }
  // Stages with groups or sizes of their own have costs of their own.
  const bool alike = parts.schedule.micro_batches_of_stage.empty() &&
                     parts.schedule.GroupSize(0) == parts.members && IsEven(parts.schedule) &&
                     (parts.members == 1 || !HasBatchNorms(*parts.model));
  if (alike) parts.costs = stages.costs;
  parts.micro_batch_size = c.micro_batch_size * parts.members;
  parts.lowering = LoweringOf(c);
  if (parts.lowering.shards > 0) parts.lowering.shards = Folded(model, c.shards);
  parts.lowering.ties = *stages.ties;
  if (own != nullptr && own->chained) parts.lowering.stages = parts.partition->stages.WithChain();
  parts.lowering.norm_values = model.norm_values;
  if ((c.execution & kStepChecks) != 0) {
    parts.lowering.norm_values = 1;
    parts.lowering.norm_rounds = 2;
  }
  absl::optional<StepParts> early;  // the same, to be put together again in another order
  if (c.early_recompute > 0) early = parts;
  PIPELAB_ASSIGN_OR_RETURN(Step step, AssembleStep(std::move(parts)));
  if (early.has_value()) {
    PIPELAB_ASSIGN_OR_RETURN(const Schedule* one, cache->ScheduleOf(c));
    const PassLengths lengths = LengthsOf(step.costs, step.program.schedule);
    PIPELAB_ASSIGN_OR_RETURN(early->schedule, RecomputeEarly(c, *one, lengths));
    ReplaceDevicesByGroups(early->members, &early->schedule);
    PIPELAB_ASSIGN_OR_RETURN(step, AssembleStep(*std::move(early)));
  }
  step.model_flops = whole->ModelFlops(c.batch(), step.program.schedule.forward_only);
  if (stages.with_heads != nullptr) step.own_graph = stages.with_heads->graph;
  if (c.divides_vocabulary()) step.own_graph = cache->model().model->graph;
  return step;
}

absl::StatusOr<Step> BuildStep(const StepModel& model, const StepConfig& config) {
  StepCache cache(model);
  return BuildStep(&cache, config);
}

}  // namespace pipelab
