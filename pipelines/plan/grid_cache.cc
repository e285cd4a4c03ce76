#include "pipelines/plan/grid_cache.h"

#include <utility>

#include "pipelines/cost/stage_costs.h"
#include "pipelines/plan/grid_cut.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Of all schedules that are kept: 12 bytes each.
constexpr int64_t kMostCachedActions = int64_t{1} << 23;

int64_t NumActions(const Schedule& schedule) {
  int64_t actions = 0;
  for (const std::vector<Action>& list : schedule.order) {
    actions += static_cast<int64_t>(list.size());
  }
  return actions;
}

}  // namespace

SchemeParams SchemeSizes(const GridConfig& c, int members) {
  SchemeParams sizes;
  sizes.devices = c.pipeline;
  sizes.micro_batches = c.micro_batches;
  sizes.virtual_stages = c.loops;
  sizes.recompute = c.recompute;
  sizes.data_parallel = members;
  return sizes;
}

absl::StatusOr<const std::vector<StageCost>*> GridCache::GroupTimesOf(const GridConfig& c) {
  auto found = group_times_.find(SizeOf(c));
  if (found == group_times_.end()) {
    PIPELAB_ASSIGN_OR_RETURN(std::vector<StageCost> times,
                             GroupTimes(model_, c.split(), c.micro_batch_samples));
    found = group_times_.emplace(SizeOf(c), std::move(times)).first;
  }
  return &found->second;
}

absl::StatusOr<const std::vector<int>*> GridCache::GroupsOf(const GridConfig& c, int stages) {
  const auto key = std::make_tuple(SizeOf(c), c.recompute, stages);
  auto found = groups_.find(key);
  if (found == groups_.end()) {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<StageCost>* times, GroupTimesOf(c));
    PIPELAB_ASSIGN_OR_RETURN(std::vector<int> groups, CutGroups(*times, c.recompute, stages));
    found = groups_.emplace(key, std::move(groups)).first;
  }
  return &found->second;
}

absl::StatusOr<const GridCache::Cut*> GridCache::CutOf(const std::vector<int>& groups) {
  auto found = cuts_.find(groups);
  if (found == cuts_.end()) {
    Cut cut;
    PIPELAB_ASSIGN_OR_RETURN(std::vector<int> stage_of_layer,
                             StagesOfGroups(*model_.model, groups));
    PIPELAB_ASSIGN_OR_RETURN(cut.partition,
                             MakePartition(model_.model->graph, std::move(stage_of_layer)));
    cut.ties = StageTies(model_.model->graph, cut.partition);
    found = cuts_.emplace(groups, std::move(cut)).first;
  }
  return &found->second;
}

absl::StatusOr<GridStages> GridCache::StagesOf(const GridConfig& c, int stages) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int>* groups, GroupsOf(c, stages));
  PIPELAB_ASSIGN_OR_RETURN(const Cut* cut, CutOf(*groups));
  const auto key = std::make_pair(SizeOf(c), *groups);
  auto found = costs_.find(key);
  if (found == costs_.end()) {
    StageCostOptions options;
    options.machine = machine();
    options.optimizer_tensors = model_.optimizer_tensors;
    options.tensor = TensorGroupOf(model_, c.split());
    PIPELAB_ASSIGN_OR_RETURN(CostTable costs, ComputeStageCosts(model_.model->graph, cut->partition,
                                                                c.micro_batch_samples, options));
    found = costs_.emplace(key, std::move(costs)).first;
  }
  return GridStages{&cut->partition, &cut->ties, &found->second};
}

absl::StatusOr<const Schedule*> GridCache::ScheduleOf(const GridConfig& c) {
  const auto key = std::make_tuple(c.scheme, c.pipeline, c.loops, c.micro_batches, c.recompute);
  auto found = schedules_.find(key);
  if (found == schedules_.end()) {
    PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, MakeSchedule(c.scheme, SchemeSizes(c)));
    const int64_t actions = NumActions(schedule);
    if (cached_actions_ + actions > kMostCachedActions) {
      schedules_.clear();
      cached_actions_ = 0;
    }
    cached_actions_ += actions;
    found = schedules_.emplace(key, std::move(schedule)).first;
  }
  return &found->second;
}

Flops GridCache::ModelFlops(int64_t samples) {
  const auto found = flops_.find(samples);
  if (found != flops_.end()) return found->second;
  Flops flops;
  for (const LayerSpec& layer : model_.model->graph.layers) {
    const LayerCosts costs = layer.costs(samples);
    flops += costs.forward + costs.backward_input + costs.backward_weight;
  }
  return flops_.emplace(samples, flops).first->second;
}

}  // namespace pipelab
