#include "pipelines/search/moved_blocks.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "pipelines/search/top_steps.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// How many groups each stage has, in order; empty where a stage has parts of one.
std::vector<int> GroupsOfStages(const GroupedModel& model, const ModelPartition& partition) {
  const std::vector<int>& stage = partition.stage_of_layer;
  const std::vector<int>& group = model.group_of_layer;
  if (stage.size() != group.size()) return {};
  std::vector<int> groups(partition.num_stages());
  for (size_t i = 0; i < stage.size(); ++i) {
    const bool first = i == 0 || group[i] != group[i - 1];
    if (i > 0 && (stage[i] < stage[i - 1] || (!first && stage[i] != stage[i - 1]))) return {};
    groups[stage[i]] += first;
  }
  return groups;
}

// StepConfig::layout, which counts layers.
std::string LayoutOf(const GroupedModel& model, const std::vector<int>& groups) {
  std::vector<int> layers_of_group(model.num_groups()), layers;
  for (const int group : model.group_of_layer) ++layers_of_group[group];
  auto next = layers_of_group.begin();
  for (const int count : groups) {
    layers.push_back(std::accumulate(next, next + count, 0));
    next += count;
  }
  return absl::StrJoin(layers, "+");
}

// The time of one micro-batch on a stage.
double TimeOfStage(const Step& step, int stage) {
  const StageCost& cost = step.costs.stages[stage];
  return static_cast<double>((cost.forward + cost.backward_input + cost.backward_weight).value());
}

struct Move {
  int from = 0, to = 0;
};

// The longest device first made as short as can be, then the one that gets the group. A longer one
// can pay where micro-batches are few, so that devices wait more than they work.
std::vector<Move> MovesOf(const Step& step, const std::vector<int>& groups) {
  const int stages = static_cast<int>(groups.size());
  const std::vector<std::vector<int>>& devices = step.program.schedule.placement.groups[0];
  std::vector<double> load(step.program.schedule.num_devices());
  double block = std::numeric_limits<double>::max();  // of a stage without embedding and head
  for (int s = 0; s < stages; ++s) {
    load[devices[s][0]] += TimeOfStage(step, s);
    block = std::min(block, TimeOfStage(step, s) / groups[s]);
  }
  const bool few = step.config.micro_batches < 2 * step.config.pipeline;
  const double longest = *std::max_element(load.begin(), load.end());
  std::vector<std::tuple<double, double, int, int>> ranked;
  for (int from = 0; from < stages; ++from) {
    if (groups[from] == 1) continue;
    for (int to = 0; to < stages; ++to) {
      if (to == from) continue;
      std::vector<double> after = load;
      after[devices[from][0]] -= block;
      after[devices[to][0]] += block;
      const double longest_after = *std::max_element(after.begin(), after.end());
      if (!few && longest_after > longest * 1.001) continue;
      ranked.emplace_back(longest_after, after[devices[to][0]], from, to);
    }
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<Move> moves;
  for (const auto& [longest_after, of_to, from, to] : ranked) moves.push_back({from, to});
  return moves;
}

class BlockMover {
 public:
  BlockMover(StepCache* cache, const SearchRequest& search, const RankedStep& step)
      : cache_(*cache),
        search_(search),
        best_(step),
        memory_(search.memory > Bytes(0) ? search.memory
                                         : cache->model().cluster->device.memory.value) {}

  absl::StatusOr<absl::optional<RankedStep>> Run() {
    const absl::optional<RankedStep> nothing;
    if (best_.config.divides_vocabulary()) return nothing;
    PIPELAB_ASSIGN_OR_RETURN(StepPrediction at, PredictStep(&cache_, best_.config));
    groups_ = GroupsOfStages(*cache_.model().model, at.step.partition);
    const Placement& placement = at.step.program.schedule.placement;
    if (groups_.size() < 2 || placement.num_replicas() > 1 || at.step.own_graph.has_value()) {
      return nothing;
    }
    while (true) {
      PIPELAB_ASSIGN_OR_RETURN(absl::optional<StepPrediction> next, Improve(at));
      if (!next.has_value()) break;
      at = std::move(*next);
    }
    return moved_ ? absl::make_optional(best_) : nothing;
  }

 private:
  absl::StatusOr<absl::optional<StepPrediction>> Improve(const StepPrediction& at) {
    for (const Move& move : MovesOf(at.step, groups_)) {
      if (++looked_ > kMostMoves || (search_.stop && search_.stop())) break;
      std::vector<int> groups = groups_;
      --groups[move.from];
      ++groups[move.to];
      StepConfig c = best_.config;
      c.cut = CutRule::kBlocks;
      c.layout = LayoutOf(*cache_.model().model, groups);
      absl::StatusOr<StepPrediction> p = PredictStep(&cache_, c);
      if (absl::IsInvalidArgument(p.status())) continue;
      if (!p.ok()) return p.status();
      if (p->largest_device > memory_ || p->step_time >= best_.step_time) continue;
      if (search_.check && !search_.check(c).ok()) continue;
      groups_ = std::move(groups);
      moved_ = true;
      TakeFigures(*p, &best_);
      return absl::make_optional(*std::move(p));
    }
    return absl::optional<StepPrediction>();
  }

  StepCache& cache_;
  const SearchRequest& search_;
  RankedStep best_;
  const Bytes memory_;
  std::vector<int> groups_;  // of each stage
  int looked_ = 0;
  bool moved_ = false;
};

}  // namespace

absl::StatusOr<absl::optional<RankedStep>> WithMovedBlocks(StepCache* cache,
                                                           const SearchRequest& search,
                                                           const RankedStep& step) {
  if (search.fixed.has("layout") || search.fixed.has("cut")) return absl::optional<RankedStep>();
  return BlockMover(cache, search, step).Run();
}

}  // namespace pipelab
