#include "pipelines/search/step_bounds.h"

#include <algorithm>
#include <utility>

#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using ScheduleShape = StepBounds::ScheduleShape;

ScheduleShape ShapeOf(const Schedule& s, bool splits) {
  ScheduleShape shape;
  shape.stages = s.num_stages();
  shape.recompute = s.RecomputedStages();
  shape.held.resize(s.num_devices());
  shape.splits = splits;
  shape.whole = s.num_slices == 1;
  const Placement& p = s.placement;
  shape.replicas = p.num_replicas();
  for (int r = 0; r < p.num_replicas(); ++r) {
    for (int stage = 0; stage < shape.stages; ++stage) {
      for (int d : p.groups[r][stage]) shape.held[d].push_back(stage);
    }
  }
  shape.in_line = p.num_replicas() == 1 && s.num_slices == 1;
  for (int d = 0; d < s.num_devices(); ++d) {
    const auto first = std::min_element(shape.held[d].begin(), shape.held[d].end());
    shape.in_line = shape.in_line && first != shape.held[d].end() && *first == d;
  }
  return shape;
}

}  // namespace

StepBounds::StepBounds(StepCache* cache) : cache_(*cache), model_(cache->model()) {
  parameters_ = model_.model->graph.num_parameters();
  for (const LayerSpec& layer : model_.model->graph.layers) {
    for (const ParameterSpec& p : layer.parameters) experts_ += p.experts_on(TensorParallel());
  }
}

Bytes StepBounds::LeastState(const StepConfig& c) const {
  // Values, gradients, the optimizer's tensors, 4 bytes each; of a device, and its part of what
  // copies share.
  const TensorParallel split = c.split();
  const double others = 4 * static_cast<double>(parameters_ - experts_) / c.pipeline / c.tensor;
  const double experts = 4 * static_cast<double>(experts_) / c.pipeline /
                         static_cast<double>(split.experts * split.expert_degree());
  const double all = others + experts, tensors = model_.optimizer_tensors;
  const double part = (others + experts * static_cast<double>(split.expert_copies())) / c.sharing();
  double state = 0;
  switch (c.sharding) {
    case Sharding::kReplicated:
      state = (2 + tensors) * all;
      break;
    case Sharding::kOptimizer:
      state = 2 * all + tensors * part;
      break;
    case Sharding::kGradients:
      state = all + (1 + tensors) * part;
      break;
    case Sharding::kFully:
      state = (2 + tensors) * part;
      break;
  }
  return Bytes(static_cast<int64_t>(state));
}

absl::StatusOr<const StepBounds::GroupCosts*> StepBounds::CostsOfStages(const StepConfig& c,
                                                                        int stages) {
  const auto experts = std::make_tuple(c.experts, c.whole_experts, c.experts > 1 ? c.pipeline : 0);
  const auto key = std::make_tuple(c.tensor, c.sequence_parallel, c.context, experts,
                                   c.micro_batch_size, c.recompute, c.rebuilt_blocks, stages);
  auto found = stages_.find(key);
  if (found != stages_.end()) return &found->second;
  PIPELAB_ASSIGN_OR_RETURN(const GroupCosts* groups, cache_.UnitTimesOf(c));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int>* cut, cache_.UnitsOf(c, stages));
  GroupCosts sums(stages);
  size_t group = 0;
  for (int s = 0; s < stages; ++s) {
    int rebuilt = 0;
    for (int i = 0; i < (*cut)[s]; ++i, ++group) {
      const Nanoseconds again = (*groups)[group].recompute;
      const bool all = c.rebuilt_blocks == 0 || rebuilt < c.rebuilt_blocks;
      if (c.recompute == Recompute::kBlocks && all) sums[s].backward_input += again;
      rebuilt += again > Nanoseconds(0);
      sums[s].forward += (*groups)[group].forward;
      sums[s].backward_input += (*groups)[group].backward_input;
      sums[s].backward_weight += (*groups)[group].backward_weight;
      sums[s].recompute += again;
    }
  }
  return &stages_.emplace(key, std::move(sums)).first->second;
}

absl::StatusOr<const ScheduleShape*> StepBounds::Shape(const StepConfig& c) {
  const auto key = std::make_tuple(c.scheme, c.pipeline, c.virtual_stages, c.replicas, c.recompute);
  auto found = shapes_.find(key);
  if (found == shapes_.end()) {
    PIPELAB_ASSIGN_OR_RETURN(const Schedule* schedule, cache_.PlacementOf(c));
    found = shapes_.emplace(key, ShapeOf(*schedule, cache_.SplitsBackwards(c, *schedule))).first;
  }
  return &found->second;
}

absl::StatusOr<Nanoseconds> StepBounds::LeastTime(const StepConfig& c) {
  PIPELAB_ASSIGN_OR_RETURN(const ScheduleShape* shape, Shape(c));
  if (!shape->whole) return Nanoseconds(0);
  PIPELAB_ASSIGN_OR_RETURN(const GroupCosts* costs, CostsOfStages(c, shape->stages));
  double least = 0;
  // Replicas share them as evenly as can be.
  const double times = c.micro_batches / shape->replicas;
  Nanoseconds before, after;  // of the stages in front of the device's first one
  for (size_t d = 0; d < shape->held.size(); ++d) {
    double compute = 0, weights = 0;
    for (const int held : shape->held[d]) {
      const StageCost& stage = (*costs)[held];
      Nanoseconds time = stage.forward + stage.backward_input + stage.backward_weight;
      if (shape->recompute[held]) time += stage.recompute;
      compute += static_cast<double>(time.value()) * times;
      weights += static_cast<double>(stage.backward_weight.value()) * times;
    }
    if (shape->in_line) {
      const StageCost& own = (*costs)[d];
      compute += static_cast<double>(before.value());
      // Weight gradients of their own may run after the last input gradient.
      const double later = shape->splits ? weights : 0;
      compute = std::max(compute, compute - later + static_cast<double>(after.value()));
      before += own.forward;
      after += shape->splits ? own.backward_input : own.backward_input + own.backward_weight;
    }
    least = std::max(least, compute);
  }
  return Nanoseconds(static_cast<int64_t>(least));
}

}  // namespace pipelab
