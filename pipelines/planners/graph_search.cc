#include "pipelines/planners/graph_search.h"

#include <algorithm>
#include <set>
#include <utility>

#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/stage_sums.h"

namespace pipelab {
namespace {

constexpr double kSameRatio = 1 + 1e-12;
constexpr size_t kMostTried = 1'000'000;
constexpr int kMostRounds = 60000;  // without a gain

std::vector<std::vector<int>> Followers(const PlanProblem& problem) {
  std::vector<std::vector<int>> followers(problem.size());
  for (const PlanEdge& edge : problem.edges) followers[edge.from].push_back(edge.to);
  return followers;
}

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
  // Next is the one with the first operator among those that can be next: branches one after the
  // other.
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
    : sets_(sets), p_(sets.problem()), goal_(goal), lines_(Followers(p_)) {}

bool GraphSearch::Keeps(const std::vector<PlanStage>& stages) const {
  int64_t devices = 0;
  for (const PlanStage& stage : stages) {
    devices += stage.devices();
    const int64_t samples =
        goal_.sequence ? stage.data * p_.micro_batch_size : stage.micro_batch_size;
    if (stage.on_processor || !sets_.AllowsSize(samples) || BatchSamples(p_) % samples != 0 ||
        samples % stage.data != 0) {
      return false;
    }
  }
  return devices <= p_.devices && (!goal_.sequence || devices <= p_.micro_batches) &&
         PeakBytes(p_, stages) <= p_.memory_bytes * kSameRatio;
}

bool GraphSearch::Offer(std::vector<PlanStage> stages) {
  if (stages.empty()) return false;
  for (PlanStage& stage : stages) {
    if (stage.micro_batch_size == 0) stage.micro_batch_size = stage.data * p_.micro_batch_size;
    if (goal_.sequence) stage.micro_batch_size = stage.in_flight = 0;
    stage.data_of_level.clear();
    stage.first_device = -1;
  }
  if (!goal_.sequence && !PutStagesInOrder(p_, &stages)) return false;
  if (!Keeps(stages)) return false;
  const PlanObjective longest =
      goal_.sequence ? PlanObjective::kStageTime : PlanObjective::kGraphStageTime;
  if (PlanValue(p_, longest, stages) > goal_.longest_stage * kSameRatio) return false;
  const double value =
      PlanValue(p_, goal_.batch ? PlanObjective::kGraphBatchTime : longest, stages);
  // The new one of equal plans is taken: the search must not stand still.
  if (value > value_) return false;
  const bool better = value * kSameRatio < value_;
  value_ = value;
  stages_ = std::move(stages);
  return better;
}

void GraphSearch::OfferSequence(const std::vector<PlanStage>& stages, SearchEffort* effort) {
  if (stages.empty()) return;
  Offer(stages);
  std::vector<int> order = TopologicalOrder(p_);
  const std::vector<int> stage_of = StageOf(p_, stages);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return stage_of[a] < stage_of[b]; });
  if (effort->left()) TryOrder(order, effort);
}

void GraphSearch::TryOrder(const std::vector<int>& order, SearchEffort* effort) {
  // What an order has was taken when it was tried first.
  uint64_t hash = 0;
  for (int v : order)
    hash = (hash ^ static_cast<uint64_t>(v + 1)) * 0x9E3779B97F4A7C15 + (hash >> 29);
  if (tried_.size() < kMostTried && !tried_.insert(hash).second) return;
  Offer(BestOfOrder(sets_, order, goal_, value_ * kSameRatio, effort));
}

void GraphSearch::TryOrdersOfGraph(int depth_first, SearchEffort* effort) {
  TryOrder(lines_.Next(LineKind::kListed), effort);
  std::vector<int> depth(p_.size()), order = TopologicalOrder(p_);
  for (int v : order) {
    for (int e : p_.operators[v].in_edges) {
      depth[v] = std::max(depth[v], depth[p_.edges[e].from] + 1);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return depth[a] < depth[b]; });
  TryOrder(order, effort);
  for (int i = 0; i < depth_first && effort->left(); ++i) {
    TryOrder(lines_.Next(LineKind::kDepthFirst), effort);
  }
}

// Two to four stages in a row of some order become one part, whose operators mix.
void GraphSearch::JoinNeighbours(std::vector<int>* part_of) {
  const auto parts = static_cast<int>(stages_.size());
  std::vector<int> row;
  for (int v : lines_.Next(*part_of, parts, LineKind::kListed)) {
    if (row.empty() || row.back() != (*part_of)[v]) row.push_back((*part_of)[v]);
  }
  const int begin = lines_.Draw(parts), end = std::min(parts, begin + 2 + lines_.Draw(3));
  for (int& part : *part_of) {
    if (std::find(row.begin() + begin, row.begin() + end, part) != row.begin() + end) {
      part = row[begin];
    }
  }
}

void GraphSearch::Improve(Patience patience, double enough, SearchEffort* effort) {
  int end = patience.rounds, gained = 0;
  int64_t steps = effort->steps();
  for (int round = 1; has_plan() && effort->left(); ++round) {
    const bool cheap = steps - effort->steps() < patience.steps;
    if (value_ <= enough * kSameRatio || (round > end && !cheap) || round - gained > kMostRounds)
      return;
    const double before = value_;
    const auto kind = static_cast<LineKind>(lines_.Draw(3));
    std::vector<int> part_of = StageOf(p_, stages_);
    const auto parts = static_cast<int>(stages_.size());
    if (lines_.Draw(2) == 0) JoinNeighbours(&part_of);
    TryOrder(lines_.Next(part_of, parts, kind), effort);
    effort->Spend(p_.size());  // orders that were tried before take their time, too
    if (value_ * kSameRatio >= before) continue;
    // A search that gained late may gain again as late.
    end = std::max(end, round + std::max(patience.rounds, round));
    gained = round;
    steps = effort->steps();
  }
}

}  // namespace pipelab
