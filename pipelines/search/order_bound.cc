#include "pipelines/search/order_bound.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "pipelines/cluster/rank_network.h"
#include "pipelines/cost/sharded_state.h"
#include "pipelines/cost/state_walk.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// One device's time after its last action, and its state.
class Tail {
 public:
  // `rings`: [pipeline device] a step of the ring of all copies.
  Tail(const StepConfig& config, const Program& order, const CostTable& costs,
       const std::vector<PathCost>& rings, Nanoseconds call)
      : c_(config), order_(order), costs_(costs), rings_(rings), call_(call) {
    one_group_ = c_.data > 1 && order.schedule.placement.num_replicas() == 1;
  }

  // Of the data-parallel group.
  Nanoseconds GatherTime(const StageCopy& copy) const {
    return TimeOfRing(copy.device, Collective::kAllGather,
                      GatherBytes(costs_, order_, Gather{{copy}}));
  }

  Nanoseconds End(const std::vector<StageCopy>& copies, const OrderWalk& walk) const {
    const OrderWalk::Device& device = walk.devices[copies[0].device];
    Nanoseconds end = device.end;
    if (one_group_) end = std::max(end, EndOfReductions(copies, walk));
    const bool gathers =
        one_group_ && (c_.sharding == Sharding::kOptimizer || c_.sharding == Sharding::kGradients);
    Nanoseconds gathered;
    for (const StageCopy& copy : copies) {
      end += StepTime(copy);
      if (gathers) gathered = std::max(gathered, end) + GatherTime(copy);
    }
    return std::max(end, gathered);
  }

  // What there is of it at all times.
  Bytes State(const std::vector<StageCopy>& copies) const {
    Bytes always;
    for (const StageCopy& copy : copies) {
      always += StateOf(costs_.stages[copy.stage].memory, ShardOf(order_, copy)).always.total();
    }
    return always;
  }

 private:
  Nanoseconds StepTime(const StageCopy& copy) const {
    const Nanoseconds whole = costs_.stages[copy.stage].step;
    if (order_.sharding == Sharding::kReplicated) return whole;
    return Nanoseconds(
        std::llround(static_cast<double>(whole.value()) * StepShare(costs_, order_, copy)));
  }

  Nanoseconds ReductionTime(const StageCopy& copy) const {
    Reduction reduction;
    reduction.members = {copy};
    reduction.scatter = c_.sharding != Sharding::kReplicated;
    return TimeOfRing(copy.device,
                      reduction.scatter ? Collective::kReduceScatter : Collective::kAllReduce,
                      ReductionBytes(costs_, order_, reduction));
  }

  // Rounded down: it is a bound.
  Nanoseconds TimeOfRing(int device, Collective kind, Bytes bytes) const {
    return call_ + RingTime(rings_[device], c_.data, kind, bytes) - Nanoseconds(1);
  }

  Nanoseconds EndOfReductions(const std::vector<StageCopy>& copies, const OrderWalk& walk) const {
    const bool early = c_.overlap_data || ShardsGradients(c_.sharding);
    std::vector<std::pair<Nanoseconds, Nanoseconds>> begin_and_time;
    for (const StageCopy& copy : copies) {
      begin_and_time.emplace_back(
          early ? walk.last_gradient[copy.replica][copy.stage] : walk.devices[copy.device].end,
          ReductionTime(copy));
    }
    std::sort(begin_and_time.begin(), begin_and_time.end());
    Nanoseconds end;
    for (const auto& [begin, time] : begin_and_time) end = std::max(end, begin) + time;
    return end;
  }

  const StepConfig& c_;
  const Program& order_;
  const CostTable& costs_;
  const std::vector<PathCost>& rings_;
  const Nanoseconds call_;
  bool one_group_ = false;  // all copies of a stage are
};

// [device] In the order of their stages.
std::vector<std::vector<StageCopy>> CopiesOf(const Schedule& s) {
  std::vector<std::vector<StageCopy>> copies(s.num_devices());
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    for (int r = 0; r < s.placement.num_replicas(); ++r) {
      const int d = s.placement.groups[r][stage][0];
      copies[d].push_back({d, r, stage});
    }
  }
  return copies;
}

}  // namespace

absl::Status OrderBound::SetOrder(const StepConfig& c) {
  StepConfig shared = c;  // but for how parameters are kept and reduced
  shared.sharding = Sharding::kReplicated;
  shared.overlap_data = true;
  std::string key = shared.ToString();
  if (key == order_of_) return absl::OkStatus();
  order_of_.clear();
  walk_of_.clear();
  PIPELAB_ASSIGN_OR_RETURN(const Schedule* schedule, cache_.ScheduleOf(c));
  PIPELAB_ASSIGN_OR_RETURN(const StepStages stages, cache_.StagesOf(c, schedule->num_stages()));
  PIPELAB_ASSIGN_OR_RETURN(order_.schedule, WithStages(*schedule, stages.partition->stages));
  costs_ = *stages.costs;
  costs_.overlap = c.overlap_pipeline;
  costs_.divided_messages = c.divided_messages();
  network_.emplace(cache_.model().cluster, GridOfStep(cache_.model(), c, costs_));
  SetRings(c);
  order_of_ = std::move(key);
  return absl::OkStatus();
}

// The same for all schemes on a grid.
void OrderBound::SetRings(const StepConfig& c) {
  std::vector<PathCost>& rings = rings_of_grid_[{c.pipeline, c.tensor, c.data}];
  if (rings.empty()) {
    for (int p = 0; p < c.pipeline; ++p) rings.push_back(network_->DataRing(p));
  }
  rings_ = &rings;
}

// While a stage's action runs, its weights are put together, and while a weight gradient does, so
// are its gradients: as if they were the action's own.
CostTable OrderBound::CostsOfRuns() const {
  CostTable costs = costs_;
  const auto& groups = order_.schedule.placement.groups;
  for (int stage = 0; stage < order_.schedule.num_stages(); ++stage) {
    StageMemory& m = costs.stages[stage].memory;
    const CopyState state = StateOf(m, ShardOf(order_, {groups[0][stage][0], 0, stage}));
    for (Bytes* peak :
         {&m.forward_peak, &m.forward_drop_peak, &m.recompute_peak, &m.backward_input_peak}) {
      *peak += state.gathered;
    }
    for (Bytes* peak : {&m.backward_peak, &m.backward_weight_peak}) {
      *peak += state.gathered + state.run_gradients;
    }
  }
  return costs;
}

std::vector<Nanoseconds> OrderBound::FirstGathers(const StepConfig& c) const {
  if (c.data == 1 || c.sharding != Sharding::kFully) return {};
  const Schedule& s = order_.schedule;
  const Tail tail(c, order_, costs_, *rings_, network_->CallOverhead());
  std::vector<Nanoseconds> gathers(s.num_devices());
  for (int d = 0; d < s.num_devices(); ++d) {
    if (s.order[d].empty()) continue;
    const Action& first = s.order[d][0];
    gathers[d] = tail.GatherTime({d, s.ReplicaOf(first.stage, first.micro_batch), first.stage});
  }
  return gathers;
}

void OrderBound::SetWalk(const StepConfig& c) {
  const bool runs = c.data > 1 && ShardsGradients(c.sharding);
  std::string key = runs ? ShardingName(c.sharding) : "without runs";
  if (key == walk_of_) return;
  walk_ = WalkOrder(
      order_, runs ? CostsOfRuns() : costs_,
      [&](int from, int to) { return network_->Message(from, to); }, FirstGathers(c));
  walk_of_ = std::move(key);
}

absl::StatusOr<OrderLeast> OrderBound::Of(const StepConfig& c) {
  PIPELAB_RETURN_IF_ERROR(SetOrder(c));
  order_.sharding = c.sharding;
  order_.devices_per_member = c.data;
  SetWalk(c);
  const Tail tail(c, order_, costs_, *rings_, network_->CallOverhead());
  OrderLeast least;
  for (const std::vector<StageCopy>& copies : CopiesOf(order_.schedule)) {
    if (copies.empty()) continue;
    least.time = std::max(least.time, tail.End(copies, walk_));
    least.memory = std::max(least.memory,
                            walk_.devices[copies[0].device].peak_activation + tail.State(copies));
  }
  return least;
}

}  // namespace pipelab
