#include "pipelines/planners/graph_search.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/stage_sums.h"

namespace pipelab {
namespace {

constexpr double kSame = 1 + 1e-12;

}  // namespace

bool PutStagesInOrder(const PlanProblem& problem, std::vector<PlanStage>* stages) {
  Plan unordered;
  unordered.stages = std::move(*stages);
  stages->clear();
  const auto edges = StageEdges(problem, unordered);
  const int size = static_cast<int>(unordered.stages.size());
  std::vector<int> missing(size);
  std::vector<std::vector<int>> feeds(size);
  for (const auto& [from, to] : edges) {
    ++missing[to];
    feeds[from].push_back(to);
  }
  // Of those that can be next the one with the first operator: branches one after the other.
  std::set<std::pair<int, int>> ready;
  const auto add = [&](int s) { ready.emplace(unordered.stages[s].layers[0], s); };
  for (int s = 0; s < size; ++s) {
    if (missing[s] == 0) add(s);
  }
  while (!ready.empty()) {
    const int s = ready.begin()->second;
    ready.erase(ready.begin());
    stages->push_back(std::move(unordered.stages[s]));
    for (int to : feeds[s]) {
      if (--missing[to] == 0) add(to);
    }
  }
  if (static_cast<int>(stages->size()) < size) return false;
  const std::vector<int64_t> in_flight = GraphInFlight(problem, *stages);
  for (size_t s = 0; s < stages->size(); ++s) (*stages)[s].in_flight = in_flight[s];
  return true;
}

GraphSearch::GraphSearch(const OperatorSets& sets, const GraphGoal& goal)
    : sets_(sets), p_(sets.problem()), goal_(goal) {}

bool GraphSearch::Offer(std::vector<PlanStage> stages) {
  if (stages.empty()) return false;
  int64_t devices = 0;
  for (PlanStage& stage : stages) {
    devices += stage.devices();
    if (stage.on_processor) return false;
    if (stage.micro_batch_size == 0) stage.micro_batch_size = stage.data * p_.micro_batch_size;
    stage.data_of_level.clear();
    stage.first_device = -1;
    if (!sets_.AllowsSize(stage.micro_batch_size) ||
        BatchSamples(p_) % stage.micro_batch_size != 0 ||
        stage.micro_batch_size % stage.data != 0) {
      return false;
    }
  }
  if (devices > p_.devices || !PutStagesInOrder(p_, &stages)) return false;
  if (PeakBytes(p_, stages) > p_.memory_bytes * kSame) return false;
  if (PlanValue(p_, PlanObjective::kGraphStageTime, stages) > goal_.longest_stage * kSame) {
    return false;
  }
  const double value =
      PlanValue(p_, goal_.batch ? PlanObjective::kGraphBatchTime : PlanObjective::kGraphStageTime,
                stages);
  // Of equal plans the new one: the search must not stand still.
  if (value > value_) return false;
  const bool better = value * kSame < value_;
  value_ = value;
  stages_ = std::move(stages);
  return better;
}

void GraphSearch::OfferSequence(const std::vector<PlanStage>& stages, SearchEffort* effort) {
  Offer(stages);
  std::vector<int> order = TopologicalOrder(p_);
  const std::vector<int> stage_of = StageOf(p_, stages);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return stage_of[a] < stage_of[b]; });
  if (effort->left()) TryOrder(order, effort);
}

void GraphSearch::TryOrder(const std::vector<int>& order, SearchEffort* effort) {
  Offer(BestOfOrder(sets_, order, goal_, value_ * kSame, effort));
}

void GraphSearch::TryOrdersOfGraph(int depth_first, SearchEffort* effort) {
  std::vector<PlanStage> one(1);
  one[0].layers.resize(p_.size());
  std::iota(one[0].layers.begin(), one[0].layers.end(), 0);
  TryOrder(Line(one, Within::kListed), effort);
  std::vector<int> depth(p_.size()), order = TopologicalOrder(p_);
  for (int v : order) {
    for (int e : p_.operators[v].in_edges) {
      depth[v] = std::max(depth[v], depth[p_.edges[e].from] + 1);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return depth[a] < depth[b]; });
  TryOrder(order, effort);
  for (int i = 0; i < depth_first && effort->left(); ++i) {
    TryOrder(Line(one, Within::kDepthFirst), effort);
  }
}

void GraphSearch::Improve(int rounds, double enough, SearchEffort* effort) {
  for (int round = 0; round < rounds && has_plan() && effort->left(); ++round) {
    if (value_ <= enough * kSame) return;
    const double before = value_;
    const auto within = static_cast<Within>(Draw(3));
    TryOrder(Line(stages_, within), effort);
    if (value_ * kSame < before) round = -1;
  }
}

std::vector<int> GraphSearch::Line(const std::vector<PlanStage>& stages, Within within) {
  const std::vector<int> stage_of = StageOf(p_, stages);
  const auto count = static_cast<int>(stages.size());
  std::vector<int> missing_stages(count), missing(p_.size());
  for (const PlanEdge& edge : p_.edges) {
    const int from = stage_of[edge.from], to = stage_of[edge.to];
    ++(from == to ? missing[edge.to] : missing_stages[to]);
  }
  std::vector<int> ready, order;
  for (int s = 0; s < count; ++s) {
    if (missing_stages[s] == 0) ready.push_back(s);
  }
  // The last that became ready is next (depth first), or any.
  const auto take = [&](std::vector<int>* from, bool any) {
    if (any) std::swap((*from)[Draw(from->size())], from->back());
    const int taken = from->back();
    from->pop_back();
    return taken;
  };
  while (!ready.empty()) {
    const int s = take(&ready, true);
    std::vector<int> inside;
    for (int v : stages[s].layers) {
      if (missing[v] == 0) inside.push_back(v);
    }
    if (within == Within::kListed) std::reverse(inside.begin(), inside.end());
    if (within == Within::kDepthFirst) std::shuffle(inside.begin(), inside.end(), random_);
    while (!inside.empty()) {
      const int v = take(&inside, within == Within::kAny);
      order.push_back(v);
      const size_t begin = inside.size();
      for (int e : p_.operators[v].out_edges) {
        const int w = p_.edges[e].to, to = stage_of[w];
        if (to == s && --missing[w] == 0) inside.push_back(w);
        if (to != s && --missing_stages[to] == 0) ready.push_back(to);
      }
      if (within == Within::kDepthFirst) {
        std::shuffle(inside.begin() + static_cast<int64_t>(begin), inside.end(), random_);
      }
      if (within == Within::kListed) std::reverse(inside.begin() + static_cast<int64_t>(begin), inside.end());
    }
  }
  return order;
}

}  // namespace pipelab
