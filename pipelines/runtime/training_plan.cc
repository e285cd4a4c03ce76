#include "pipelines/runtime/training_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/graph/context_parallel.h"
#include "models/graph/expert_parallel.h"
#include "pipelines/ir/validate.h"
#include "pipelines/ir/versions.h"
#include "pipelines/step/local_stages.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::StatusOr<ModelPartition> PartitionOf(const ModelGraph& graph, int num_stages,
                                           const TrainingOptions& options,
                                           const StageLearning& learning = {}) {
  if (!options.stage_of_layer.empty()) return MakePartition(graph, options.stage_of_layer);
  return ChoosePartition(graph, num_stages, options.micro_batch_size, options.layout, learning);
}

absl::StatusOr<Schedule> ScheduleOf(const ModelGraph& graph, const TrainingOptions& options) {
  if (options.schedule.has_value()) {
    PIPELAB_RETURN_IF_ERROR(Validate(*options.schedule));  // before sizes are taken from it
    return *options.schedule;
  }
  SchemeParams sizes = options.sizes;
  PIPELAB_ASSIGN_OR_RETURN(const Scheme* scheme, FindScheme(options.scheme));
  const bool given = !options.stage_of_layer.empty() || !options.layout.empty();
  if ((scheme->options & kStageGraph) != 0 && given && sizes.stages.num_stages() == 0) {
    PIPELAB_ASSIGN_OR_RETURN(const ModelPartition stages,
                             PartitionOf(graph, /*num_stages=*/0, options));
    sizes.stages = stages.stages;
  }
  return MakeSchedule(options.scheme, sizes);
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

absl::Status MakeProgram(const TrainingOptions& options, TrainingPlan* plan) {
  const ModelGraph& graph = plan->graph;
  PIPELAB_RETURN_IF_ERROR(CheckOptimizer(options.optimizer));
  StepParts parts;
  PIPELAB_ASSIGN_OR_RETURN(parts.schedule, ScheduleOf(graph, options));
  if (!parts.schedule.carried.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(parts.schedule.name,
                     ": its micro-batches are passes of tokens, and no samples "
                     "of a model; see serving/generate.h"));
  }
  StageLearning learning;
  learning.forward_only = parts.schedule.forward_only;
  const bool local = LearnsLocally(parts.schedule);
  if (local) learning.heads = options.local_heads;
  PIPELAB_ASSIGN_OR_RETURN(ModelPartition partition,
                           PartitionOf(graph, parts.schedule.num_stages(), options, learning));
  partition.block_of_layer = options.block_of_layer;
  RebuildPart(options.rebuilt, parts.schedule.num_devices(), &partition);
  const bool shares = parts.schedule.GroupSize(0) > 1 || options.context_parallel > 1;
  const bool leave_after_weights =
      parts.schedule.weights_travel || (shares && ShardsGradients(options.lowering.sharding));
  if (options.whole_head && !leave_after_weights) partition.unsplit = HeadLayers(graph);
  absl::optional<LocalStages> stages;
  if (local) {
    PIPELAB_ASSIGN_OR_RETURN(stages, LocalStagesOf({graph, {}}, partition, *learning.heads));
  }
  if (stages.has_value()) {
    plan->graph = std::move(stages->model.graph);
    partition = std::move(stages->partition);
  }
  PIPELAB_ASSIGN_OR_RETURN(plan->slices,
                           ChooseSlices(graph, parts.schedule, options.slices, plan->split));
  PIPELAB_RETURN_IF_ERROR(CheckBatchNorm(graph, partition, parts.schedule, options.batch_norm));
  PIPELAB_RETURN_IF_ERROR(
      CheckMeetingGroups(parts.schedule, options, static_cast<int>(options.context_parallel),
                         absl::StrCat("--context_parallel=", options.context_parallel), "samples"));
  PIPELAB_RETURN_IF_ERROR(
      CheckMeetingGroups(parts.schedule, options, static_cast<int>(plan->split.expert_copies()),
                         absl::StrCat("--expert_parallel=", options.expert_parallel), "experts"));
  const GroupedModel model = {graph, {}};
  StepModel on;
  on.model = &model;
  on.optimizer_tensors = static_cast<int>(StateNames(options.optimizer).size());
  on.step_flops_per_parameter = StepFlopsPerParameter(options.optimizer);
  parts.model = &on;
  parts.partition = &partition;
  parts.slices = plan->slices;
  parts.config.context = parts.members = static_cast<int>(options.context_parallel);
  parts.config.context_exchange = options.context_exchange;
  parts.micro_batch_size = options.micro_batch_size * options.context_parallel;
  parts.config.tensor = static_cast<int>(plan->split.degree);
  parts.config.sequence_parallel = plan->split.sequence;
  parts.config.experts = static_cast<int>(plan->split.experts);
  parts.config.whole_experts = plan->split.whole_experts;
  parts.config.batch_norm = options.batch_norm;
  parts.lowering = options.lowering;
  parts.lowering.expert_copies = static_cast<int>(plan->split.expert_copies());
  parts.lowering.stages = options.sequential ? partition.stages.WithChain() : partition.stages;
  if (options.optimizer.needs_norm()) parts.lowering.norm_values = NumParameterValues(graph);
  PIPELAB_ASSIGN_OR_RETURN(pipelab::Step step, AssembleStep(std::move(parts)));
  plan->partition = std::move(step.partition);
  plan->program = std::move(step.program);
  plan->costs = std::move(step.costs);
  return absl::OkStatus();
}

// `tokens`: of a smallest micro-batch.
absl::Status CountTokens(int64_t tokens, TrainingPlan* plan) {
  const Schedule& schedule = plan->program.schedule;
  const auto passes = [&](int stage) {  // of a smallest micro-batch
    return int64_t{schedule.MicroBatches(stage)} * schedule.MicroBatchSize(stage);
  };
  plan->batch_tokens = passes(plan->partition.loss_stage) * tokens;
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
  TrainingPlan plan;
  plan.split = {options.tensor_parallel, options.sequence_parallel, options.context_parallel,
                options.expert_parallel, options.whole_experts,     options.context_exchange};
  PIPELAB_RETURN_IF_ERROR(CheckTensorParallel(graph, plan.split));
  PIPELAB_RETURN_IF_ERROR(CheckContextParallel(graph, plan.split));
  PIPELAB_RETURN_IF_ERROR(CheckExpertParallel(graph, plan.split, plan.split.expert_copies()));
  PIPELAB_RETURN_IF_ERROR(CheckOwnRows(graph, plan.split));
  const NumberWidth width{SizeOf(options.devices.activations())};
  PIPELAB_ASSIGN_OR_RETURN(plan.graph, WithNumberWidth(graph, width, "--dtype=bf16"));
  PIPELAB_RETURN_IF_ERROR(MakeProgram(options, &plan));
  PIPELAB_RETURN_IF_ERROR(CheckShards(options.lowering.sharding, options.lowering.shards,
                                      plan.program.schedule.GroupSize(0),
                                      plan.split.expert_copies()));
  PIPELAB_RETURN_IF_ERROR(
      CountTokens(options.micro_batch_size * batches.targets_per_sample(), &plan));
  return plan;
}

absl::StatusOr<ModelPartition> ChoosePartition(const ModelGraph& graph, int num_stages,
                                               int64_t micro_batch_size, absl::string_view layout,
                                               const StageLearning& learning) {
  const GroupedModel model = {graph, {}};
  StepModel on;
  on.model = &model;
  StepConfig config;
  config.cut = CutRule::kLayers;
  config.micro_batch_size = micro_batch_size;
  config.layout = std::string(layout);
  if (learning.heads.has_value()) {
    config.scheme = "local";
    config.local_heads = *learning.heads;
  } else if (learning.forward_only) {
    config.scheme = "over_time_inference";
  }
  StepCache cache(on);
  PIPELAB_ASSIGN_OR_RETURN(const ModelPartition* partition, cache.PartitionOf(config, num_stages));
  return *partition;
}

}  // namespace pipelab
