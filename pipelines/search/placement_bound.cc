#include "pipelines/search/placement_bound.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

double Value(Nanoseconds t) { return static_cast<double>(t.value()); }

// The most of its stage activations that a device holds.
double MostHeldBy(const StepCache& cache, const StepConfig& c) {
  const double unknown = std::numeric_limits<double>::max();
  if (c.has_schedule_file() || cache.HasSchedule(c.scheme)) return unknown;
  if (c.divides_vocabulary()) return unknown;  // a scheme's limit is that of its chain
  const absl::StatusOr<const Scheme*> scheme = FindScheme(c.scheme);
  return scheme.ok() ? static_cast<double>(MostHeld(**scheme, SchemeSizes(c))) : unknown;
}

bool HasOneSource(const StageGraph& stages) {
  for (int stage = 1; stage < stages.num_stages(); ++stage) {
    const std::vector<int>& in = stages.in_edges[stage];
    if (std::none_of(in.begin(), in.end(),
                     [&](int e) { return stages.edges[e].gradient.same(); })) {
      return false;
    }
  }
  return true;
}

Nanoseconds RoundedDown(double t) { return Nanoseconds(static_cast<int64_t>(t)); }

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
  splits_ = cache_.SplitsBackwards(placed_.config(), s);
  most_held_ = MostHeldBy(cache_, placed_.config());
  kept_.assign(s.num_stages(), 0);
  peaks_.assign(s.num_stages(), Bytes(0));
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    const StageMemory& m = costs.stages[stage].memory;
    Bytes inputs;
    for (int e : s.stages.in_edges[stage]) inputs += costs.edge_bytes[e];
    const Bytes kept = inputs + (recomputed_[stage] ? m.kept_when_dropped : m.kept);
    kept_[stage] = static_cast<double>(kept.value());
    const Bytes backward =
        splits_ ? std::min(m.backward_input_peak, m.backward_peak) : m.backward_peak;
    peaks_[stage] = inputs + m.kept + backward;
    if (recomputed_[stage]) peaks_[stage] = std::max(peaks_[stage], kept + m.recompute_peak);
  }
  const int replicas = s.placement.num_replicas();
  const int share = placed_.config().micro_batches / replicas;  // as even as can be
  micro_batches_ = share;
  ways_.assign(replicas, std::vector<Ways>(s.num_stages()));
  for (int r = 0; r < replicas; ++r) {
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
        if (!s.stages.edges[e].gradient.same()) continue;
        way.after = std::max(way.after, ways[from].after + hop(e, stage, from) + Backward(from));
      }
    }
    for (int stage = s.num_stages() - 1; stage >= 0; --stage) {
      for (int e : s.stages.out_edges[stage]) {
        if (!s.stages.edges[e].gradient.same()) continue;
        const int to = s.stages.edges[e].to;
        ways[stage].beyond =
            std::max(ways[stage].beyond, hop(e, stage, to) + Value(costs.stages[to].forward) +
                                             ways[to].beyond + Backward(to) + hop(e, to, stage));
      }
    }
  }
  copies_ = placed_.Copies();
  SetHeld();
  ways_of_ = placed_.key();
}

// What a device holds when it holds the most activations: of those that keep least, as many of each
// stage as a replica has micro-batches.
void PlacementBound::SetHeld() {
  const StepConfig& c = placed_.config();
  const std::vector<int64_t>& activations = activations_.Of(c);
  held_.assign(copies_.size(), 0);
  const double most = std::ceil(static_cast<double>(c.micro_batches) / ways_.size());
  for (size_t d = 0; d < activations.size(); ++d) {
    std::vector<double> kept;
    for (const StageCopy& copy : copies_[d]) {
      const StageMemory& m = placed_.costs().stages[copy.stage].memory;
      const double for_weight = static_cast<double>(m.kept_for_weight.value());
      kept.push_back(splits_ ? std::min(kept_[copy.stage], for_weight) : kept_[copy.stage]);
    }
    held_[d] = LeastBytes(activations[d], std::move(kept), most);
  }
}

// And sets its part of the walk.
StepLeast PlacementBound::OfDevice(int device, Bytes memory, OrderWalk* walk) const {
  double begin = std::numeric_limits<double>::max(), after = begin;
  double gradient = begin;  // when the first can be there
  double work = 0, weights = 0, area = 0, held_area = 0, forwards = 0;
  double longest_forward = 0, longest_weight = 0;
  double least_kept = begin, least_for_weight = begin;  // bytes
  std::vector<double> kept(ways_.size());               // by one micro-batch of each replica
  Bytes peak;                                           // in a backward
  for (const StageCopy& copy : copies_[device]) {
    const Ways& ways = ways_[copy.replica][copy.stage];
    const StageCost& cost = placed_.costs().stages[copy.stage];
    const double times = micro_batches_;
    begin = std::min(begin, ways.before);
    after = std::min(after, ways.after);
    work += times * PassTime(copy.stage);
    const double forward =
        Value(recomputed_[copy.stage] ? cost.forward + cost.recompute : cost.forward);
    gradient = std::min(gradient, ways.before + Value(cost.forward) + ways.beyond);
    forwards += times * forward;
    longest_forward = std::max(longest_forward, forward);
    least_kept = std::min(least_kept, kept_[copy.stage]);
    if (splits_) weights += times * Value(cost.backward_weight);
    longest_weight = std::max(longest_weight, Value(cost.backward_weight));
    least_for_weight =
        std::min(least_for_weight, static_cast<double>(cost.memory.kept_for_weight.value()));
    const double to_gradient = ways.beyond + Backward(copy.stage);
    area += times * kept_[copy.stage] * to_gradient;
    held_area += times * (Value(cost.forward) + to_gradient);
    if (times > 0) {
      kept[copy.replica] += kept_[copy.stage];
      peak = std::max(peak, peaks_[copy.stage]);
    }
    walk->last_gradient[copy.replica][copy.stage] =
        RoundedDown(ways.before + times * PassTime(copy.stage));
  }
  const Bytes state = states_[device];
  const double free = static_cast<double>((memory - state).value());
  // Little's law, for bytes and for activations.
  const double in_memory = std::max(free > 0 ? area / free : 0, held_area / most_held_);
  const double held = std::min(most_held_, least_kept > 0 ? free / least_kept : most_held_);
  // What waits for its weight gradient alone may keep less than what waits for its gradient.
  const double waiting =
      least_for_weight > 0 ? std::min(most_held_, free / least_for_weight) : most_held_;
  weights = std::min(weights, waiting * longest_weight);            // after the last input gradient
  const double first = std::min(forwards, held * longest_forward);  // before that gradient
  const double idle = std::max(0.0, gradient - begin - first);
  work += idle;
  walk->devices[device].end = RoundedDown(begin + std::max(work, in_memory));
  StepLeast least;
  const double all = std::max(held_[device], *std::max_element(kept.begin(), kept.end()));
  least.memory = state + std::max(peak, Bytes(static_cast<int64_t>(all)));
  least.time = RoundedDown(begin + std::max(work - weights, in_memory) + after);
  return least;
}

// Without what comes after the actions.
StepLeast PlacementBound::OfDevices(Bytes memory, OrderWalk* walk) const {
  walk->devices.assign(copies_.size(), {});
  walk->last_gradient.assign(ways_.size(), std::vector<Nanoseconds>(kept_.size()));
  StepLeast least;
  for (size_t d = 0; d < copies_.size(); ++d) {
    if (copies_[d].empty()) continue;
    const StepLeast own = OfDevice(static_cast<int>(d), memory, walk);
    least.time = std::max(least.time, own.time);
    least.memory = std::max(least.memory, own.memory);
  }
  return least;
}

// The least of these in which an order can be so short.
Bytes PlacementBound::MemoryFor(Nanoseconds order, Bytes least, Bytes most) const {
  OrderWalk walk;
  while (least < most) {
    const Bytes middle((least.value() + most.value()) / 2);
    if (OfDevices(middle, &walk).time <= order) {
      most = middle;
    } else {
      least = middle + Bytes(1);
    }
  }
  return least;
}

absl::StatusOr<bool> PlacementBound::Place(const StepConfig& c) {
  PIPELAB_ASSIGN_OR_RETURN(const Schedule* schedule, cache_.PlacementOf(c));
  if (!CanWalkOrder(*schedule)) return false;
  PIPELAB_RETURN_IF_ERROR(placed_.Set(c, *schedule));
  SetWays();
  states_.clear();
  for (const std::vector<StageCopy>& copies : copies_)
    states_.push_back(placed_.StateOfDevice(copies));
  return true;
}

absl::StatusOr<Bytes> PlacementBound::MemoryOfOrder(const StepConfig& c, Bytes memory) {
  PIPELAB_ASSIGN_OR_RETURN(const bool placed, Place(c));
  if (!placed || !StepCache::ChoosesOrder(c)) return Bytes(0);
  OrderWalk walk;
  const Nanoseconds time = OfDevices(memory, &walk).time;
  const Bytes ample(int64_t{1} << 60);
  if (time <= OfDevices(ample, &walk).time) return Bytes(0);
  PIPELAB_ASSIGN_OR_RETURN(const absl::optional<Nanoseconds> longest, cache_.LongestOrder(c));
  if (!longest.has_value() || time <= *longest) return Bytes(0);
  return MemoryFor(*longest, memory, ample);
}

absl::StatusOr<StepLeast> PlacementBound::OfAnySharding(const StepConfig& c, Bytes memory) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string key, MemoryKey(c));
  const auto known = memory_.find(key);
  if (known != memory_.end() && known->second > memory) return StepLeast{{}, known->second};
  PIPELAB_ASSIGN_OR_RETURN(const bool placed, Place(c));
  OrderWalk walk;
  const StepLeast least = placed ? OfDevices(memory, &walk) : StepLeast();
  if (!key.empty()) memory_[key] = least.memory;
  return least;
}

// What overlaps, and how rows go to experts and messages between stages, is a matter of time: it
// changes memory only by the cut, which is by times.
absl::StatusOr<std::string> PlacementBound::MemoryKey(StepConfig c) {
  if (c.has_schedule_file() || cache_.HasSchedule(c.scheme)) return "";
  std::string cut;  // of a layout, what it says
  if (c.layout.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(const Schedule* schedule, cache_.PlacementOf(c));
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<int>* units,
                             cache_.UnitsOf(c, schedule->num_stages()));
    cut = absl::StrJoin(*units, "+");
  }
  c = WithoutTimesAlone(std::move(c));
  c.steady_overlap = c.whole_messages = false;
  c.overlap_pipeline = c.overlap_data = true;
  return absl::StrCat(c.ToString(), " ", cut);
}

absl::StatusOr<StepLeast> PlacementBound::Of(const StepConfig& c, Bytes memory) {
  PIPELAB_ASSIGN_OR_RETURN(const bool placed, Place(c));
  if (!placed) return StepLeast();
  OrderWalk walk;
  StepLeast least = OfDevices(memory, &walk);
  if (least.memory > memory) return least;
  // The last backward is one of the first stage, if all ways back lead there.
  if (ways_.size() == 1 && HasOneSource(placed_.order().schedule.stages)) {
    const auto& groups = placed_.order().schedule.placement.groups;
    OrderWalk::Device& first = walk.devices[groups[0][0][0]];
    first.end = std::max(first.end, least.time);
  }
  for (const std::vector<StageCopy>& copies : copies_) {
    if (!copies.empty()) least.time = std::max(least.time, placed_.End(copies, walk));
  }
  return least;
}

}  // namespace pipelab
