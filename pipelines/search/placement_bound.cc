#include "pipelines/search/placement_bound.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

double Value(Nanoseconds t) { return static_cast<double>(t.value()); }
Nanoseconds RoundedDown(double t) { return Nanoseconds(static_cast<int64_t>(t)); }

bool SplitsBackwards(const Schedule& s) {
  return std::any_of(s.order.begin(), s.order.end(), [](const std::vector<Action>& list) {
    return std::any_of(list.begin(), list.end(),
                       [](const Action& a) { return a.kind == ActionKind::kBackwardInput; });
  });
}

}  // namespace

double PlacementBound::HopTime(int edge, int from, int to) {
  if (from == to) return 0;
  const CostTable& costs = placed_.costs();
  const int64_t bytes = costs.edge_bytes[edge].value();
  const PathCost& way = placed_.Hop(from, to);
  return Value(way.latency + way.TransferTime(Bytes(bytes / costs.PartsOfMessage(bytes))));
}

double PlacementBound::Backward(int stage) const {
  const StageCost& cost = placed_.costs().stages[stage];
  return Value(splits_ ? cost.backward_input : cost.backward_input + cost.backward_weight);
}

double PlacementBound::PassTime(int stage) const {
  const StageCost& cost = placed_.costs().stages[stage];
  const Nanoseconds passes = cost.forward + cost.backward_input + cost.backward_weight;
  return Value(recomputed_[stage] ? passes + cost.recompute : passes);
}

void PlacementBound::SetWays() {
  if (ways_of_ == placed_.key()) return;
  const Schedule& s = placed_.order().schedule;
  const CostTable& costs = placed_.costs();
  recomputed_ = s.RecomputedStages();
  splits_ = SplitsBackwards(s);
  kept_.assign(s.num_stages(), 0);
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    const StageMemory& m = costs.stages[stage].memory;
    Bytes kept = recomputed_[stage] ? m.kept_when_dropped : m.kept;
    for (int e : s.stages.in_edges[stage]) kept += costs.edge_bytes[e];
    kept_[stage] = static_cast<double>(kept.value());
  }
  const auto& replica_of = s.placement.replica_of_micro_batch;
  const double scale =
      static_cast<double>(placed_.config().micro_batches) / static_cast<double>(replica_of.size());
  const int replicas = s.placement.num_replicas();
  micro_batches_.resize(replicas);
  ways_.assign(replicas, std::vector<Ways>(s.num_stages()));
  for (int r = 0; r < replicas; ++r) {
    micro_batches_[r] =
        static_cast<double>(std::count(replica_of.begin(), replica_of.end(), r)) * scale;
    const auto& groups = s.placement.groups[r];
    std::vector<Ways>& ways = ways_[r];
    const auto hop = [&](int edge, int from, int to) {
      return HopTime(edge, groups[from][0], groups[to][0]);
    };
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      for (int e : s.stages.in_edges[stage]) {
        const int from = s.stages.edges[e].from;
        Ways& way = ways[stage];
        way.before = std::max(way.before, ways[from].before + hop(e, from, stage) +
                                              Value(costs.stages[from].forward));
        way.after =
            std::max(way.after, ways[from].after + hop(e, stage, from) + Backward(from));
      }
    }
    for (int stage = s.num_stages() - 1; stage >= 0; --stage) {
      for (int e : s.stages.out_edges[stage]) {
        const int to = s.stages.edges[e].to;
        ways[stage].beyond =
            std::max(ways[stage].beyond, hop(e, stage, to) + Value(costs.stages[to].forward) +
                                             ways[to].beyond + Backward(to) + hop(e, to, stage));
      }
    }
  }
  ways_of_ = placed_.key();
}

// And sets its part of the walk.
StepLeast PlacementBound::OfDevice(const std::vector<StageCopy>& copies, Bytes memory,
                                   OrderWalk* walk) const {
  double begin = std::numeric_limits<double>::max(), after = begin;
  double work = 0, weights = 0, area = 0;
  std::vector<double> kept(micro_batches_.size());  // by one micro-batch of each replica
  for (const StageCopy& copy : copies) {
    const Ways& ways = ways_[copy.replica][copy.stage];
    const StageCost& cost = placed_.costs().stages[copy.stage];
    const double times = micro_batches_[copy.replica];
    begin = std::min(begin, ways.before);
    after = std::min(after, ways.after);
    work += times * PassTime(copy.stage);
    if (splits_) weights += times * Value(cost.backward_weight);
    area += times * kept_[copy.stage] * (ways.beyond + Backward(copy.stage));
    if (times > 0) kept[copy.replica] += kept_[copy.stage];
    walk->last_gradient[copy.replica][copy.stage] =
        RoundedDown(ways.before + times * PassTime(copy.stage));
  }
  const Bytes state = placed_.State(copies);
  const double free = static_cast<double>((memory - state).value());
  const double in_memory = free > 0 ? area / free : 0;
  walk->devices[copies[0].device].end = RoundedDown(begin + std::max(work, in_memory));
  StepLeast least;
  least.memory = state + Bytes(static_cast<int64_t>(*std::max_element(kept.begin(), kept.end())));
  least.time = RoundedDown(begin + std::max(work - weights, in_memory) + after);
  return least;
}

absl::StatusOr<StepLeast> PlacementBound::Of(const StepConfig& c, Bytes memory) {
  PIPELAB_ASSIGN_OR_RETURN(const Schedule* schedule, cache_.PlacementOf(c));
  PIPELAB_RETURN_IF_ERROR(placed_.Set(c, *schedule));
  SetWays();
  const Schedule& s = placed_.order().schedule;
  OrderWalk walk;
  walk.devices.resize(s.num_devices());
  walk.last_gradient.assign(ways_.size(), std::vector<Nanoseconds>(s.num_stages()));
  StepLeast least;
  const std::vector<std::vector<StageCopy>> copies = placed_.Copies();
  for (const std::vector<StageCopy>& of_device : copies) {
    if (of_device.empty()) continue;
    const StepLeast own = OfDevice(of_device, memory, &walk);
    least.time = std::max(least.time, own.time);
    least.memory = std::max(least.memory, own.memory);
  }
  // The last backward is one of the first stage.
  if (ways_.size() == 1) {
    OrderWalk::Device& first = walk.devices[s.placement.groups[0][0][0]];
    first.end = std::max(first.end, least.time);
  }
  for (const std::vector<StageCopy>& of_device : copies) {
    if (!of_device.empty()) least.time = std::max(least.time, placed_.End(of_device, walk));
  }
  return least;
}

}  // namespace pipelab
