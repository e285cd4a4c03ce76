#include "pipelines/plan/grid_order_bound.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "pipelines/cluster/grid_links.h"
#include "pipelines/cost/sharded_state.h"
#include "pipelines/cost/state_walk.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// One device's time after its last action, and its state.
class Tail {
 public:
  Tail(const GridModel& model, const GridConfig& config, const Program& order,
       const CostTable& costs)
      : c_(config), order_(order), costs_(costs), members_(MembersOf(model, config)) {
    if (c_.data > 1) hop_ = GridLinks(model, config, costs).MemberHop(members_);
    one_group_ = c_.data > 1 && order.schedule.placement.num_replicas() == 1;
  }

  // Of the data-parallel group.
  Nanoseconds GatherTime(const StageCopy& copy) const {
    return RingTime(hop_, members_, Collective::kAllGather,
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
    return costs_.reduce +
           RingTime(hop_, members_,
                    reduction.scatter ? Collective::kReduceScatter : Collective::kAllReduce,
                    ReductionBytes(costs_, order_, reduction));
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

  const GridConfig& c_;
  const Program& order_;
  const CostTable& costs_;
  const int members_;
  PathCost hop_;
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

absl::Status GridOrderBound::SetOrder(const GridConfig& c) {
  GridConfig shared = c;  // but for how parameters are kept and reduced
  shared.sharding = Sharding::kReplicated;
  shared.overlap_data = true;
  std::string key = shared.ToString();
  if (key == order_of_) return absl::OkStatus();
  order_of_.clear();
  walk_of_.clear();
  PIPELAB_ASSIGN_OR_RETURN(const Schedule* schedule, cache_.ScheduleOf(c));
  PIPELAB_ASSIGN_OR_RETURN(const GridStages stages, cache_.StagesOf(c, schedule->num_stages()));
  PIPELAB_ASSIGN_OR_RETURN(order_.schedule, WithStages(*schedule, stages.partition->stages));
  costs_ = *stages.costs;
  costs_.overlap = c.overlap_pipeline;
  costs_.reduce = CallOverhead(cache_.model());
  order_of_ = std::move(key);
  return absl::OkStatus();
}

// While a stage's action runs, its weights are put together, and while a weight gradient does, so
// are its gradients: as if they were the action's own.
CostTable GridOrderBound::CostsOfRuns() const {
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

std::vector<Nanoseconds> GridOrderBound::FirstGathers(const GridConfig& c) const {
  if (c.data == 1 || c.sharding != Sharding::kFully) return {};
  const Schedule& s = order_.schedule;
  const Tail tail(cache_.model(), c, order_, costs_);
  std::vector<Nanoseconds> gathers(s.num_devices());
  for (int d = 0; d < s.num_devices(); ++d) {
    if (s.order[d].empty()) continue;
    const Action& first = s.order[d][0];
    gathers[d] = tail.GatherTime({d, s.ReplicaOf(first.stage, first.micro_batch), first.stage});
  }
  return gathers;
}

void GridOrderBound::SetWalk(const GridConfig& c) {
  const bool runs = c.data > 1 && ShardsGradients(c.sharding);
  std::string key = runs ? ShardingName(c.sharding) : "without runs";
  if (key == walk_of_) return;
  const GridLinks links(cache_.model(), c, costs_);
  walk_ = WalkOrder(
      order_, runs ? CostsOfRuns() : costs_,
      [&](int from, int to) { return links.MessageHop(from, to); }, FirstGathers(c));
  walk_of_ = std::move(key);
}

absl::StatusOr<OrderLeast> GridOrderBound::Of(const GridConfig& c) {
  PIPELAB_RETURN_IF_ERROR(SetOrder(c));
  order_.sharding = c.sharding;
  order_.devices_a_member = c.data;
  SetWalk(c);
  const Tail tail(cache_.model(), c, order_, costs_);
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
