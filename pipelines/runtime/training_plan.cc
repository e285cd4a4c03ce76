#include "pipelines/runtime/training_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/graph/expert_parallel.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/ir/validate.h"
#include "pipelines/ir/versions.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/step/execution.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kOwnScheme[] = "the given schedule";

// Gives the cache what the configuration's scheme does not say alone, and the configuration its
// sizes.
absl::Status TakeSchedule(const TrainingOptions& options, StepConfig* config, StepCache* cache) {
  OwnSchedule own;
  own.slices = options.slices;
  own.chained = options.sequential;
  if (options.schedule.has_value()) {
    PIPELAB_RETURN_IF_ERROR(Validate(*options.schedule));  // before sizes are taken from it
    own.schedule = *options.schedule;
    config->scheme = kOwnScheme;
    config->pipeline = own.schedule.num_devices();
    config->micro_batches = own.schedule.num_micro_batches;
  } else if (HasOption(config->scheme, kStageGraph) && !config->layout.empty() &&
             !config->divides_vocabulary()) {
    SchemeParams sizes = SchemeSizes(*config);
    PIPELAB_ASSIGN_OR_RETURN(const ModelPartition* stages,
                             cache->PartitionOf(*config, /*stages=*/0));
    sizes.stages = stages->stages;
    PIPELAB_ASSIGN_OR_RETURN(own.schedule, MakeSchedule(config->scheme, sizes));
  } else if (own.chained || !own.slices.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(const Schedule* made, cache->ScheduleOf(*config));
    own.schedule = *made;
  } else {
    return absl::OkStatus();
  }
  cache->AddSchedule(config->scheme, std::move(own));
  return absl::OkStatus();
}

// `together` devices of each group, which share `what` of a stage, meet within their passes, and
// rows go from each to its like.
absl::Status CheckMeetingGroups(const Schedule& s, const TrainingOptions& options, int together,
                                const std::string& option, const char* what) {
  if (together == 1) return absl::OkStatus();
  const auto error = [&](const auto&... words) {
    return absl::InvalidArgumentError(absl::StrCat(option, ": ", words...));
  };
  if (options.sequential || !s.micro_batches_of_stage.empty()) {
    return error("stages must be a chain with micro-batches of one size");
  }
  for (const auto& replica : s.placement.groups) {
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      const std::vector<int>& group = replica[stage];
      if (group.size() % together != 0 || group.size() != replica[0].size()) {
        return error("stage ", stage, " has ", group.size(),
                     " devices; each stage must have as many, a multiple of ", together);
      }
      for (size_t member = 0; member < group.size(); ++member) {
        const int first = group[member - member % together];
        const bool ascending = member % together == 0 || group[member] > group[member - 1];
        if (!ascending || s.order[group[member]] != s.order[first]) {
          return error("devices ", first, " and ", group[member], " share the ", what, " of stage ",
                       stage, ": they must be ascending and run the same actions in one order");
        }
      }
    }
  }
  return absl::OkStatus();
}

// Where a rank routes its own rows alone, it does not see whole samples.
absl::Status CheckOwnRows(const ModelGraph& graph, TensorParallel split) {
  if (!split.whole_experts || split.degree == 1) return absl::OkStatus();
  for (const LayerSpec& layer : graph.layers) {
    if (RoutedExperts(layer) == 0) continue;
    const bool capacity = Attribute(layer, "capacity") > 0;
    if (!capacity && Attribute(layer, "balance") == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "whole_experts: layer \"", layer.name, "\" has ",
        capacity ? "a capacity" : "a balancing loss", " for each sample, whose tokens T=",
        split.degree, " ranks divide; leave out whole_experts"));
  }
  return absl::OkStatus();
}

// Whatever the machine, stages are cut by flops.
absl::StatusOr<Step> BuildTrainedStep(const ModelGraph& graph, const TrainingOptions& options) {
  const GroupedModel model = GroupByName(graph);
  StepModel on;
  on.model = &model;
  on.fold_data = false;
  on.optimizer_tensors = static_cast<int>(StateNames(options.optimizer).size());
  on.step_flops_per_parameter = StepFlopsPerParameter(options.optimizer);
  if (options.optimizer.needs_norm()) on.norm_values = NumParameterValues(graph);
  StepConfig config = options.config;
  // These have a price and no run: devices keep 4 bytes of each number, and no host waits.
  config.state = StateNumbers();
  config.execution &= kGroupedCalls | kAllForwardsFirst;
  StepCache cache(on);
  PIPELAB_RETURN_IF_ERROR(TakeSchedule(options, &config, &cache));
  if (config.sharing() > 1 && ShardsGradients(config.sharding)) {  // CheckSplitHead asks for it
    PIPELAB_ASSIGN_OR_RETURN(const Schedule* few, cache.PlacementOf(config));
    config.split_head = cache.SplitsBackwards(config, *few);
  }
  return BuildStep(&cache, config);
}

// That its devices can run the step as it is.
absl::Status CheckRuns(const ModelGraph& graph, const TrainingOptions& options,
                       const TrainingPlan& plan) {
  const StepConfig& c = options.config;
  const Schedule& schedule = plan.step.program.schedule;
  PIPELAB_RETURN_IF_ERROR(CheckBatchNorm(graph, plan.step.partition, schedule, c.batch_norm));
  PIPELAB_RETURN_IF_ERROR(CheckMeetingGroups(
      schedule, options, c.context, absl::StrCat("--context_parallel=", c.context), "samples"));
  const int expert_copies = static_cast<int>(plan.split.expert_copies());
  PIPELAB_RETURN_IF_ERROR(CheckMeetingGroups(
      schedule, options, expert_copies, absl::StrCat("--expert_parallel=", c.experts), "experts"));
  return CheckShards(c.sharding, c.shards, schedule.GroupSize(0), expert_copies);
}

// `tokens`: of a smallest micro-batch.
absl::Status CountTokens(int64_t tokens, TrainingPlan* plan) {
  const Schedule& schedule = plan->step.program.schedule;
  const auto passes = [&](int stage) {  // of a smallest micro-batch
    return int64_t{schedule.MicroBatches(stage)} * schedule.MicroBatchSize(stage);
  };
  plan->batch_tokens = passes(plan->step.partition.loss_stage) * tokens;
  if (HasOwnSteps(schedule)) plan->version_uses = VersionUses(schedule);
  for (int stage = 0; stage < schedule.num_stages(); ++stage) {
    int updates = 1;
    if (HasOwnSteps(schedule)) {
      updates = static_cast<int>(plan->version_uses[stage].size()) - 1;
      const bool alike = schedule.ReplaysAt(stage) || stage == 0 || updates == plan->updates;
      if (updates == 0 || !alike || passes(stage) % updates != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("the schedule's ", passes(stage),
                         " micro-batches do not divide among the steps (S) of each stage"));
      }
    }
    plan->updates = std::max(plan->updates, updates);
    plan->update_tokens.push_back(passes(stage) / updates * tokens);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrainingPlan> PlanTraining(const ModelGraph& graph, const BatchSource& batches,
                                          const TrainingOptions& options) {
  const StepConfig& c = options.config;
  TrainingPlan plan;
  plan.split = c.split();
  PIPELAB_RETURN_IF_ERROR(CheckOptimizer(options.optimizer));
  PIPELAB_RETURN_IF_ERROR(CheckOwnRows(graph, plan.split));
  const NumberWidth width{SizeOf(options.devices.activations())};
  PIPELAB_ASSIGN_OR_RETURN(plan.graph, WithNumberWidth(graph, width, "--dtype=bf16"));
  PIPELAB_ASSIGN_OR_RETURN(plan.step, BuildTrainedStep(plan.graph, options));
  if (plan.step.own_graph.has_value()) plan.graph = *plan.step.own_graph;
  PIPELAB_RETURN_IF_ERROR(CheckRuns(plan.graph, options, plan));
  PIPELAB_RETURN_IF_ERROR(CountTokens(options.samples() * batches.targets_per_sample(), &plan));
  return plan;
}

absl::StatusOr<ModelPartition> ChoosePartition(const ModelGraph& graph, int num_stages,
                                               int64_t micro_batch_size, absl::string_view layout) {
  const GroupedModel model = {graph, {}};
  StepModel on;
  on.model = &model;
  StepConfig config = CutByLayers();
  config.micro_batch_size = micro_batch_size;
  config.layout = std::string(layout);
  StepCache cache(on);
  PIPELAB_ASSIGN_OR_RETURN(const ModelPartition* partition, cache.PartitionOf(config, num_stages));
  return *partition;
}

}  // namespace pipelab
