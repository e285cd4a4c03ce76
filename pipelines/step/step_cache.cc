#include "pipelines/step/step_cache.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "models/graph/alike_layers.h"
#include "models/specs/kept_activations.h"
#include "models/specs/megatron_kernels.h"
#include "models/specs/recomputed_modules.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/step/megatron_graph.h"
#include "pipelines/step/megatron_layout.h"
#include "pipelines/step/stage_cut.h"
#include "pipelines/step/vocabulary_parts.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// As the flag has it, where commas do not separate keys.
std::string LayoutFlag(const StepConfig& c) {
  return absl::StrReplaceAll(c.layout, {{"+", ","}, {"/", ";"}});
}

}  // namespace

absl::StatusOr<StepCache*> StepCache::CacheOf(const StepConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckVocabularyParts(c));
  if (!c.divides_vocabulary()) return this;
  const auto key = std::make_pair(c.pipeline, c.vocabulary_barriers);
  auto found = divided_by_.find(key);
  if (found == divided_by_.end()) {
    PIPELAB_ASSIGN_OR_RETURN(DividedVocabulary made, DivideVocabulary(*model_.model, c));
    found = divided_by_.emplace(key, Divided{std::move(made), nullptr}).first;
    const DividedVocabulary& divided = found->second.of;
    StepModel model = model_;
    model.model = &divided.model;
    model.vocabulary_parts = divided.parts();
    found->second.cache = std::make_unique<StepCache>(model);
    found->second.cache->divided_ = &divided;
    found->second.cache->whole_ = &model_.model->graph;
  }
  return found->second.cache.get();
}

absl::StatusOr<std::vector<int>> StepCache::StagesOfLayout(const StepConfig& c) const {
  const ModelGraph& graph = divided_ == nullptr ? model_.model->graph : *whole_;
  const std::string layout = LayoutFlag(c);
  if (!IsMegatronLayout(layout)) {
    return ParseStages(layout, static_cast<int>(graph.layers.size()));
  }
  const auto error = [&](const absl::Status& status) {
    return absl::InvalidArgumentError(absl::StrCat("--layout=", layout, ": ", status.message()));
  };
  const absl::StatusOr<std::vector<MegatronStage>> stages = ParseMegatronLayout(layout);
  if (!stages.ok()) return error(stages.status());
  absl::StatusOr<std::vector<int>> stage_of_layer = StageOfLayerIn(*stages, graph);
  if (!stage_of_layer.ok()) return error(stage_of_layer.status());
  return stage_of_layer;
}

absl::StatusOr<const StepModel*> StepCache::ModelOf(const StepConfig& c) {
  if (c.recompute != Recompute::kSelective) return &model_;
  if (const auto found = selective_.find(c.modules); found != selective_.end()) {
    return &found->second.model;
  }
  const GroupedModel& model = *model_.model;
  ModelGraph graph;
  if (c.modules.empty()) {
    if (!AllowsSelectiveRecompute(model.graph)) {
      return absl::InvalidArgumentError(
          absl::StrCat("recompute=selective: no layer of ", model.graph.name,
                       " keeps attention's scores; give none, full or blocks"));
    }
    graph = WithSelectiveRecompute(model.graph);
  } else {
    if (!LossImplementationOf(whole_ == nullptr ? model.graph : *whole_).has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("modules=", c.modules, ": ", model.graph.name,
                       " has kernels of its own; give --kernels=megatron, or recompute=blocks"));
    }
    PIPELAB_ASSIGN_OR_RETURN(graph,
                             WithRecomputedModules(model.graph, absl::StrSplit(c.modules, '+'),
                                                   ProductInputsUnder(model_.type)));
  }
  Selective& made = selective_[c.modules];
  made.graph = {std::move(graph), model.group_of_layer};
  made.model = model_;
  made.model.model = &made.graph;
  return &made.model;
}

absl::StatusOr<const std::vector<UnitTime>*> StepCache::UnitTimesOf(const StepConfig& c) {
  auto found = unit_times_.find(SizeOf(c));
  if (found == unit_times_.end()) {
    PIPELAB_ASSIGN_OR_RETURN(const StepModel* model, ModelOf(c));
    const std::vector<int>& alike = AlikeOf(*model->model);
    absl::flat_hash_map<int, LayerTimes> known;  // by the first layer that is alike
    const auto times_of = [&](int layer) -> absl::StatusOr<const LayerTimes*> {
      const auto found = known.find(alike[layer]);
      if (found != known.end()) return &found->second;
      PIPELAB_ASSIGN_OR_RETURN(const LayerTimes* times,
                               LayerTimesOf(*model->model)
                                   .TimesOf(
                                       c, [&] { return GroupOf(c); }, layer));
      return &known.emplace(alike[layer], *times).first->second;
    };
    PIPELAB_ASSIGN_OR_RETURN(std::vector<UnitTime> times, model_.cluster == nullptr
                                                              ? UnitTimes(*model, c)
                                                              : UnitTimes(*model, c, times_of));
    found = unit_times_.emplace(SizeOf(c), std::move(times)).first;
  }
  return &found->second;
}

absl::StatusOr<Nanoseconds> StepCache::WorkOf(const StepConfig& c) {
  PIPELAB_ASSIGN_OR_RETURN(const StepModel* model, ModelOf(c));
  return LayerTimesOf(*model->model).WorkOf(c, [&] { return GroupOf(c); });
}

LayerTimeMemo& StepCache::LayerTimesOf(const GroupedModel& model) {
  const auto found = layer_times_.find(&model);
  if (found != layer_times_.end()) return found->second;
  return layer_times_.try_emplace(&model, model.graph, AlikeOf(model), *model_.machine())
      .first->second;
}

const std::vector<int>& StepCache::AlikeOf(const GroupedModel& model) {
  auto alike = alike_.find(&model);
  if (alike == alike_.end()) alike = alike_.emplace(&model, FirstAlike(model.graph)).first;
  return alike->second;
}

TensorGroup StepCache::GroupOf(const StepConfig& c) {
  if (c.slice_exchange) return TensorGroupOf(model_, c);  // between places of the pipeline, too
  StepConfig places = c;
  places.exchanges = Exchanges::kWaited;
  const ExpertKey experts = ExpertKeyOf(places);
  const bool heads = c.context_exchange == ContextExchange::kHeads;  // by all-to-alls
  const auto key = std::make_tuple(c.tensor, c.context, heads, experts);
  auto found = groups_.find(key);
  if (found == groups_.end()) {
    const bool apart = c.ranks == RankOrder::kTensorPipelineData;
    const auto path_key = std::make_tuple(c.tensor, apart ? c.context : 1, experts);
    auto path = expert_paths_.find(path_key);
    if (path == expert_paths_.end()) {
      path = expert_paths_.emplace(path_key, ExpertPathOf(model_, c)).first;
    }
    found = groups_.emplace(key, TensorGroupOf(model_, c, path->second)).first;
  }
  TensorGroup group = found->second;
  TakeChoices(model_, c, &group);
  return group;
}

absl::StatusOr<StageLearning> StepCache::LearningOf(const StepConfig& c) {
  StageLearning learning;
  bool local = HasOption(c.scheme, kNoGradients), passes = HasOption(c.scheme, kTokenPasses);
  learning.forward_only = HasOption(c.scheme, kForwardOnly);
  if (c.has_schedule_file() || HasSchedule(c.scheme)) {
    PIPELAB_ASSIGN_OR_RETURN(const Schedule* schedule, ScheduleOf(c));
    learning.forward_only = schedule->forward_only;
    passes = !schedule->carried.empty();
    local = LearnsLocally(*schedule);
  }
  if (passes) {
    return absl::InvalidArgumentError(
        absl::StrCat(c.scheme,
                     ": its micro-batches are passes of tokens, and no samples of a model; "
                     "generate runs them, and //experiments:pipelined_decoding prices them"));
  }
  if (!local) return learning;
  for (const LayerSpec& layer : model_.model->graph.layers) local &= layer.detached.empty();
  if (local) learning.heads = c.local_heads;
  return learning;
}

absl::StatusOr<bool> StepCache::LayoutHasWholeUnits(const StepConfig& c) const {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> stage_of_layer, StagesOfLayout(c));
  const std::vector<int> unit_of_layer = UnitOfLayer(*model_.model, c.cut);
  if (unit_of_layer.size() != stage_of_layer.size()) return false;  // of the undivided model
  for (size_t i = 1; i < stage_of_layer.size(); ++i) {
    if (unit_of_layer[i] == unit_of_layer[i - 1] && stage_of_layer[i] != stage_of_layer[i - 1]) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<std::vector<int>> StepCache::CutOrLayout(const StepConfig& c, int stages,
                                                        const StageLearning& learning) {
  if (!c.layout.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(const bool whole, LayoutHasWholeUnits(c));
    if (whole) {
      PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> stage_of_layer, StagesOfLayout(c));
      const std::vector<int> unit_of_layer = UnitOfLayer(*model_.model, c.cut);
      std::vector<int> units(stage_of_layer.back() + 1);
      for (size_t i = 0; i < stage_of_layer.size(); ++i) {
        if (i == 0 || unit_of_layer[i] != unit_of_layer[i - 1]) ++units[stage_of_layer[i]];
      }
      return units;
    }
  }
  const auto key = std::make_tuple(SizeOf(c), CutKeyOf(c), learning.forward_only);
  auto costs = unit_costs_.find(key);
  if (costs == unit_costs_.end()) {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<UnitTime>* times, UnitTimesOf(c));
    costs = unit_costs_
                .emplace(key, UnitCosts(model_, c, *times, learning.forward_only,
                                        AlikeOf(*model_.model)))
                .first;
  }
  return CutUnits(model_, c, costs->second, stages, learning);
}

// Rules that look at no times have the same units for all that is a matter of time.
absl::StatusOr<const std::vector<int>*> StepCache::UnitsOf(const StepConfig& config, int stages) {
  if (config.cut != CutRule::kFlopsVariance && config.cut != CutRule::kMemory) {
    return UnitsByKey(config, stages);
  }
  StepConfig c = WithoutTimesAlone(config);
  if (c.cut == CutRule::kFlopsVariance) {
    c.tensor = c.context = c.experts = 1;
    c.sequence_parallel = c.whole_experts = false;
    c.state = StateNumbers();
    c.context_exchange = ContextExchange::kGather;
  }
  if (c.cut == CutRule::kFlopsVariance || !c.recomputes_forwards()) {
    c.recompute = Recompute::kNone;
  }
  c.modules.clear();
  return UnitsByKey(c, stages);
}

absl::StatusOr<const std::vector<int>*> StepCache::UnitsByKey(const StepConfig& c, int stages) {
  PIPELAB_ASSIGN_OR_RETURN(const StageLearning learning, LearningOf(c));
  const auto key = std::make_tuple(SizeOf(c), CutKeyOf(c), stages, learning, c.layout);
  auto found = units_.find(key);
  if (found == units_.end()) {
    PIPELAB_ASSIGN_OR_RETURN(std::vector<int> units, CutOrLayout(c, stages, learning));
    found = units_.emplace(key, &*known_units_.insert(std::move(units)).first).first;
  }
  return found->second;
}

// Nothing depends on it in a schedule without I. Where weights travel, gradients leave after W.
bool StepCache::SchemeLeavesHeadWhole(absl::string_view scheme) {
  return HasOption(scheme, kSplitBackward) && !HasOption(scheme, kBeyondBounds);
}

absl::StatusOr<bool> StepCache::LeavesHeadWhole(const StepConfig& c) {
  if (c.split_head || divided_ != nullptr) return false;
  if (!c.has_schedule_file() && !HasSchedule(c.scheme)) return SchemeLeavesHeadWhole(c.scheme);
  PIPELAB_ASSIGN_OR_RETURN(const Schedule* schedule, ScheduleOf(c));
  return !schedule->weights_travel;
}

absl::StatusOr<const StepCache::Cut*> StepCache::CutOf(const StepConfig& c, int stages) {
  const GroupedModel& model = *model_.model;
  std::vector<int> stage_of_layer;
  if (!c.layout.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(stage_of_layer, StagesOfLayout(c));
    if (divided_ != nullptr) stage_of_layer = divided_->vocabulary.StageOfLayer(stage_of_layer);
  } else {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<int>* units, UnitsOf(c, stages));
    stage_of_layer = StageOfLayer(UnitOfLayer(model, c.cut), *units);
  }
  PIPELAB_ASSIGN_OR_RETURN(const StageLearning learning, LearningOf(c));
  const absl::optional<LocalHead>& heads = learning.heads;
  PIPELAB_ASSIGN_OR_RETURN(const bool whole_head, LeavesHeadWhole(c));
  // Every few-th block of a device: so they depend on which stages it has.
  const int devices = c.rebuilt_every == 1 ? 0 : c.pipeline;
  const auto key = std::make_tuple(stage_of_layer, std::get<Recompute>(SizeOf(c)), c.rebuilt(),
                                   devices, heads, whole_head);
  auto found = cuts_.find(key);
  if (found == cuts_.end()) {
    Cut cut;
    absl::StatusOr<ModelPartition> made = MakePartition(model.graph, stage_of_layer);
    if (!made.ok() && !c.layout.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--layout=", LayoutFlag(c), ": ", made.status().message()));
    }
    PIPELAB_ASSIGN_OR_RETURN(cut.partition, std::move(made));
    cut.ties = StageTies(model.graph, cut.partition);
    if (c.recompute == Recompute::kBlocks) {
      cut.partition.block_of_layer = RebuiltBlocksOf(model_);
      RebuildPart(c.rebuilt(), c.pipeline, &cut.partition);
    }
    if (whole_head) cut.partition.unsplit = HeadLayers(model.graph);
    if (heads.has_value()) {
      PIPELAB_ASSIGN_OR_RETURN(const StepModel* computed, ModelOf(c));
      PIPELAB_ASSIGN_OR_RETURN(cut.local, LocalStagesOf(*computed->model, cut.partition, *heads));
    }
    found = cuts_.emplace(key, std::move(cut)).first;
  }
  const int made = found->second.partition.num_stages();
  if (made == stages || stages == 0) return &found->second;
  const int around = StagesAroundChain(model_.vocabulary_parts);
  return absl::InvalidArgumentError(absl::StrCat("--layout=", LayoutFlag(c), ": ", made - around,
                                                 " stages, but the scheme has ", stages - around));
}

absl::StatusOr<const ModelPartition*> StepCache::PartitionOf(const StepConfig& c, int stages) {
  PIPELAB_ASSIGN_OR_RETURN(const Cut* cut, CutOf(c, stages));
  return &cut->partition;
}

absl::StatusOr<StepStages> StepCache::StagesOf(const StepConfig& c, int stages,
                                               const std::vector<int64_t>& slices) {
  PIPELAB_ASSIGN_OR_RETURN(const Cut* cut, CutOf(c, stages));
  const auto key = std::make_tuple(SizeOf(c), cut, slices);
  const ModelPartition& partition = cut->local.has_value() ? cut->local->partition : cut->partition;
  auto found = costs_.find(key);
  if (found == costs_.end()) {
    PIPELAB_ASSIGN_OR_RETURN(const StepModel* model, ModelOf(c));
    StageCostOptions options;
    options.machine = model_.machine();
    options.optimizer_tensors = model_.optimizer_tensors;
    options.state = c.state;
    options.step_flops_per_parameter = model_.step_flops_per_parameter;
    options.tensor = GroupOf(c);
    options.slices = slices;
    const GroupedModel& graph = cut->local.has_value() ? cut->local->model : *model->model;
    StageCostMemo* memo = nullptr;
    if (!cut->local.has_value() && !c.slice_exchange) {
      memo = &stage_costs_.try_emplace(SizeOf(c), graph.graph, AlikeOf(graph)).first->second;
      if (options.machine.has_value()) {
        options.layer_times = [&](int layer) {
          return LayerTimesOf(graph).TimesOf(
              c, [&] { return options.tensor; }, layer);
        };
      }
    }
    PIPELAB_ASSIGN_OR_RETURN(CostTable costs, ComputeStageCosts(graph.graph, partition,
                                                                c.micro_batch_size, options, memo));
    found = costs_.emplace(key, std::move(costs)).first;
  }
  const GroupedModel* with_heads = cut->local.has_value() ? &cut->local->model : nullptr;
  return StepStages{&partition, &cut->ties, &found->second, with_heads};
}

Flops StepCache::ModelFlops(int64_t samples, bool forward_only) {
  const auto found = flops_.find({samples, forward_only});
  if (found != flops_.end()) return found->second;
  Flops flops;
  for (const LayerSpec& layer : model_.model->graph.layers) {
    const LayerCosts costs = layer.costs(samples);
    flops += costs.forward;
    if (!forward_only) flops += costs.backward_input + costs.backward_weight;
  }
  return flops_.emplace(std::make_pair(samples, forward_only), flops).first->second;
}

}  // namespace pipelab
