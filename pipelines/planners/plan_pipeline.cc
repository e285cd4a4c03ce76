#include "pipelines/planners/plan_pipeline.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

template <typename... Parts>
absl::Status PipelineError(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("plan: ", parts...));
}

absl::StatusOr<std::vector<int>> StageOfLayers(const ModelGraph& graph, const PlanProblem& problem,
                                               const Plan& plan) {
  std::vector<int> stage_of_layer(graph.layers.size(), -1);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    for (int v : plan.stages[s].layers) {
      const PlanOperator& op = problem.operators[v];
      if (op.layers.empty())
        return PipelineError("layer ", op.id, " is no layer of a model that can run");
      for (int layer : op.layers) {
        if (stage_of_layer[layer] >= 0) {
          return PipelineError("layer ", op.id, " is in stages ", stage_of_layer[layer], " and ",
                               s);
        }
        stage_of_layer[layer] = static_cast<int>(s);
      }
    }
  }
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    if (stage_of_layer[i] < 0)
      return PipelineError("layer ", graph.layers[i].name, " is in no stage");
  }
  return stage_of_layer;
}

// [stage] -> devices.
absl::StatusOr<std::vector<std::vector<int>>> DevicesOfStages(const Plan& plan,
                                                              const ModelPartition& partition,
                                                              PlanPlacement placement) {
  std::vector<int> order(plan.stages.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    const int64_t copies_a = plan.stages[a].data, copies_b = plan.stages[b].data;
    if (placement == PlanPlacement::kLargestFirst && copies_a != copies_b) {
      return copies_a > copies_b;
    }
    return partition.layers[a][0] < partition.layers[b][0];
  });
  std::vector<std::vector<int>> devices(plan.stages.size());
  int64_t next = 0;
  for (int s : order) {
    const PlanStage& stage = plan.stages[s];
    if (stage.tensor != 1 || stage.on_processor) {
      return PipelineError("stage ", s, ": tensor parallelism ", stage.tensor,
                           stage.on_processor ? ", on a processor" : "",
                           ": plans run without these");
    }
    constexpr int64_t kMostDevices = 1 << 14;
    if (stage.data < 1 || next + stage.data > kMostDevices) {
      return PipelineError("stage ", s, ": ", stage.data, " copies: at most ", kMostDevices,
                           " devices");
    }
    for (int64_t i = 0; i < stage.data; ++i) devices[s].push_back(static_cast<int>(next++));
  }
  return devices;
}

// No more than a step has.
int64_t SamplesInTurn(int64_t copies, const PlanPipelineOptions& options) {
  int64_t micro_batch_size = options.micro_batch_size;
  for (int64_t c = 1; c < copies && options.batch_samples % (2 * micro_batch_size) == 0; c *= 2) {
    micro_batch_size *= 2;
  }
  return micro_batch_size;
}

// [stage] Micro-batches of a step.
absl::StatusOr<std::vector<int32_t>> MicroBatches(const Plan& plan,
                                                  const PlanPipelineOptions& options) {
  constexpr int64_t kMost = 1 << 22;
  std::vector<int32_t> counts;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    int64_t micro_batch_size = plan.stages[s].micro_batch_size;
    if (micro_batch_size == 0) {
      micro_batch_size = options.micro_batch_size;
      if (micro_batch_size >= 1 && options.copies == CopyRule::kTakeTurns) {
        micro_batch_size = SamplesInTurn(plan.stages[s].data, options);
      }
    }
    if (micro_batch_size < 1 || options.batch_samples < 1 ||
        options.batch_samples % micro_batch_size != 0 ||
        options.batch_samples / micro_batch_size > kMost) {
      return PipelineError("stage ", s, ": micro-batches of ", micro_batch_size,
                           " samples: a step has ", options.batch_samples,
                           ", and must be a multiple of that, at most ", kMost, " micro-batches");
    }
    counts.push_back(static_cast<int32_t>(options.batch_samples / micro_batch_size));
  }
  return counts;
}

// An R before each backward of the stages in which a layer recomputes.
void RecomputeStages(const PlanProblem& problem, const Plan& plan, Schedule* schedule) {
  std::vector<bool> recomputes;
  for (const PlanStage& stage : plan.stages) {
    bool any = false;
    for (size_t i = 0; i < stage.variants.size(); ++i) {
      any = any || problem.operators[stage.layers[i]].variants.at(1)[stage.variants[i]].recompute;
    }
    recomputes.push_back(any);
  }
  for (std::vector<Action>& order : schedule->order) {
    std::vector<Action> with;
    for (const Action& action : order) {
      if (action.kind == ActionKind::kBackward && recomputes[action.stage]) {
        with.push_back(action);
        with.back().kind = ActionKind::kRecompute;
      }
      with.push_back(action);
    }
    order = std::move(with);
  }
}

}  // namespace

int PlanPipeline::Depth() const {
  std::vector<int> depth(schedule.num_stages(), 1);
  for (int s : schedule.stages.TopologicalOrder()) {
    for (int e : schedule.stages.out_edges[s]) {
      int& next = depth[schedule.stages.edges[e].to];
      next = std::max(next, depth[s] + 1);
    }
  }
  return *std::max_element(depth.begin(), depth.end());
}

absl::StatusOr<PlanPipeline> MakePlanPipeline(const ModelGraph& graph, const PlanProblem& problem,
                                              const Plan& plan,
                                              const PlanPipelineOptions& options) {
  if (!plan.has_plan()) return PipelineError("there are no stages");
  PlanPipeline pipeline;
  PIPELAB_ASSIGN_OR_RETURN(std::vector<int> stage_of_layer, StageOfLayers(graph, problem, plan));
  absl::StatusOr<ModelPartition> partition = MakePartition(graph, std::move(stage_of_layer));
  if (!partition.ok()) return PipelineError(partition.status().message());
  pipeline.partition = *std::move(partition);
  SchemeParams sizes;
  PIPELAB_ASSIGN_OR_RETURN(sizes.devices_of_stage,
                           DevicesOfStages(plan, pipeline.partition, options.placement));
  for (const std::vector<int>& group : sizes.devices_of_stage) {
    for (int device : group) sizes.devices = std::max(sizes.devices, device + 1);
  }
  PIPELAB_ASSIGN_OR_RETURN(sizes.micro_batches_of_stage, MicroBatches(plan, options));
  sizes.micro_batches =
      *std::max_element(sizes.micro_batches_of_stage.begin(), sizes.micro_batches_of_stage.end());
  sizes.stages = pipeline.partition.stages;
  if (options.chain) sizes.stages = sizes.stages.WithChain();
  sizes.group_size = options.kfkb;
  absl::StatusOr<Schedule> schedule = MakeSchedule("graph", std::move(sizes));
  if (!schedule.ok()) return PipelineError(schedule.status().message());
  pipeline.schedule = *std::move(schedule);
  RecomputeStages(problem, plan, &pipeline.schedule);
  pipeline.micro_batch_size = options.batch_samples / pipeline.schedule.num_micro_batches;
  return pipeline;
}

}  // namespace pipelab
