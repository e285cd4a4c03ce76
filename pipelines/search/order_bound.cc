#include "pipelines/search/order_bound.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/cost/sharded_state.h"
#include "pipelines/cost/state_walk.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Whether each stage waits for the one before it, as orders that are made for passes' times assume.
bool IsChain(const StageGraph& stages) {
  for (int stage = 1; stage < stages.num_stages(); ++stage) {
    const std::vector<int>& in = stages.in_edges[stage];
    if (std::none_of(in.begin(), in.end(), [&](int e) {
          return stages.edges[e].from == stage - 1 && stages.edges[e].gradient.same();
        })) {
      return false;
    }
  }
  return true;
}

}  // namespace

// While a stage's action runs, its weights are put together, and while a weight gradient does, so
// are its gradients: as if they were the action's own.
CostTable OrderBound::CostsOfRuns() const {
  const Program& order = placed_.order();
  CostTable costs = placed_.costs();
  const auto& groups = order.schedule.placement.groups;
  for (int stage = 0; stage < order.schedule.num_stages(); ++stage) {
    StageMemory& m = costs.stages[stage].memory;
    const CopyState state = StateOf(m, ShardOf(order, {groups[0][stage][0], 0, stage}));
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

std::vector<Nanoseconds> OrderBound::FirstGathers() const {
  if (placed_.config().copies() == 1 || placed_.config().sharding != Sharding::kFully) return {};
  const Schedule& s = placed_.order().schedule;
  std::vector<Nanoseconds> gathers(s.num_devices());
  for (int d = 0; d < s.num_devices(); ++d) {
    if (s.order[d].empty()) continue;
    const Action& first = s.order[d][0];
    gathers[d] = placed_.GatherTime({d, s.ReplicaOf(first.stage, first.micro_batch), first.stage});
  }
  return gathers;
}

const std::vector<Bytes>& OrderBound::Peaks() {
  const StepConfig& c = placed_.config();
  const bool runs = c.copies() > 1 && ShardsGradients(c.sharding);
  const std::string divided = runs ? absl::StrCat(ShardingName(c.sharding), "/", c.shards) : "";
  std::vector<Bytes>& peaks = peaks_[absl::StrCat(placed_.key(), " ", divided)];
  if (peaks.empty()) {
    peaks = OrderPeaks(placed_.order(), runs ? CostsOfRuns() : placed_.costs());
  }
  return peaks;
}

const OrderWalk& OrderBound::Walk() {
  const std::vector<Nanoseconds> gathers = FirstGathers();
  const std::string from = gathers.empty() ? "" : absl::StrCat(" ", placed_.config().shards);
  OrderWalk& walk = walks_[absl::StrCat(placed_.key(), from)];
  if (walk.devices.empty()) {
    walk = WalkOrder(
        placed_.order(), placed_.costs(), [&](int from, int to) { return placed_.Hop(from, to); },
        gathers);
  }
  return walk;
}

// The limits of a schedule with the optimizer's state sharded, at least: the same memory for
// configurations that share a schedule, which is made, or found not to fit, once for all of them.
absl::StatusOr<StepCache::Limits> OrderBound::LimitsOf(StepConfig c, Bytes memory,
                                                       Nanoseconds time) {
  StepCache::Limits limits;
  PIPELAB_ASSIGN_OR_RETURN(const Schedule* placement, cache_.PlacementOf(c));
  if (!CanWalkOrder(*placement)) return limits;
  PIPELAB_RETURN_IF_ERROR(placement_.Set(c, *placement));
  if (time > Nanoseconds(0) && IsChain(placement_.order().schedule.stages)) {
    limits.too_long = time + Nanoseconds(1) - placement_.LeastStepTime();
  }
  if (c.copies() > 1 && c.sharding == Sharding::kReplicated) {
    c.sharding = Sharding::kOptimizer;
    PIPELAB_RETURN_IF_ERROR(placement_.Set(c, *placement));
  }
  for (const std::vector<StageCopy>& copies : placement_.Copies()) {
    limits.free.push_back(memory - placement_.StateOfDevice(copies));
  }
  return limits;
}

absl::StatusOr<const Schedule*> OrderBound::ScheduleOf(const StepConfig& c, Bytes memory,
                                                       Nanoseconds time) {
  if (!StepCache::ChoosesOrder(c)) return cache_.ScheduleOf(c);
  PIPELAB_ASSIGN_OR_RETURN(const StepCache::Limits limits, LimitsOf(c, memory, time));
  return cache_.ScheduleWithin(c, limits);
}

absl::StatusOr<StepLeast> OrderBound::Of(const StepConfig& c, Bytes memory, Nanoseconds time) {
  StepLeast least;
  const absl::StatusOr<const Schedule*> made = ScheduleOf(c, memory, time);
  if (absl::IsResourceExhausted(made.status())) least.memory = memory + Bytes(1);
  if (absl::IsOutOfRange(made.status())) least.time = time + Nanoseconds(1);
  if (least.memory > memory || (time > Nanoseconds(0) && least.time > time)) return least;
  PIPELAB_ASSIGN_OR_RETURN(const Schedule* schedule, made);
  if (!CanWalkOrder(*schedule)) return least;
  PIPELAB_RETURN_IF_ERROR(placed_.Set(c, *schedule));
  const std::vector<std::vector<StageCopy>> devices = placed_.Copies();
  const std::vector<Bytes>& peaks = Peaks();
  for (const std::vector<StageCopy>& copies : devices) {
    if (copies.empty()) continue;
    const Bytes state = placed_.StateOfDevice(copies);
    least.memory = std::max(least.memory, peaks[copies[0].device] + state);
  }
  if (least.memory > memory) return least;
  const OrderWalk& walk = Walk();
  for (const std::vector<StageCopy>& copies : devices) {
    if (copies.empty()) continue;
    least.time = std::max(least.time, placed_.End(copies, walk));
    least.time = std::max(least.time, placed_.CollectivesOfRuns(copies[0].device));
  }
  return least;
}

}  // namespace pipelab
