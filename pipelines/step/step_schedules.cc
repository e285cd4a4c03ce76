// The part of StepCache that makes schedules and keeps them.
#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/step/execution.h"
#include "pipelines/step/order_memory.h"
#include "pipelines/step/schedule_file.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Actions of all schedules that are kept: 12 bytes each.
constexpr int64_t kMostCachedActions = int64_t{1} << 24;

int64_t NumActions(const Schedule& schedule) {
  int64_t actions = 0;
  for (const std::vector<Action>& list : schedule.order) {
    actions += static_cast<int64_t>(list.size());
  }
  return actions;
}

// The configuration with one value of all that a schedule does not depend on; one that is made for
// its passes' times depends on all that they and messages take. Schedules are made from it alone,
// and kept by its text.
StepConfig OrderConfig(const StepConfig& c, bool timed) {
  StepConfig order;
  if (timed) {
    order = c;
    order.sharding = Sharding::kReplicated;
    order.shards = order.early_recompute = 0;
    order.batch_norm = BatchNormCopies::kSynchronised;
    order.vocabulary_exchange = VocabularyExchange::kMessages;
    order.residency = Residency::kRun;
    order.overlap_pipeline = order.overlap_data = true;
    order.steady_overlap = false;
    order.model.clear();
    order.cluster.clear();
    order.dtype.clear();
    return order;
  }
  order.scheme = c.scheme;
  order.pipeline = c.pipeline;
  order.virtual_stages = c.virtual_stages;
  order.micro_batches = c.micro_batches;
  if (c.recompute == Recompute::kFull) order.recompute = c.recompute;
  order.group_size = c.group_size;
  order.replicas = c.replicas;
  order.slices = c.slices;
  order.update_interval = c.update_interval;
  order.concatenation = c.concatenation;
  order.vocabulary_barriers = c.vocabulary_barriers;
  if (SchemeSizes(c).forwards_first) order.execution = kAllForwardsFirst;
  return order;
}

// `order`: an OrderConfig.
std::string ScheduleKey(const StepConfig& order, bool timed) {
  return absl::StrCat(order.ToString(), timed ? "/timed" : "");
}

// Between neighbours: the least that a message takes, and the longest way from a device to the next
// for the largest message.
std::pair<Nanoseconds, Nanoseconds> HopTimes(const StepModel& model, const StepConfig& c,
                                             const CostTable& costs) {
  if (model.cluster == nullptr || c.pipeline == 1) return {};
  const Bytes largest = LargestMessage(costs);
  const RankNetwork network(model.cluster, GridOfStep(model, c, MembersOf(model, c), largest));
  const auto time = [&](int from, int to, Bytes bytes) {
    const PathCost way = network.Message(from, to);
    const int64_t parts = c.divided_messages() ? MessageParts(bytes, c.tensor) : 1;
    return way.latency + way.TransferTime(Bytes(bytes.value() / parts));
  };
  Bytes smallest = largest;  // a model may have no edges
  for (const Bytes bytes : costs.edge_bytes) smallest = std::min(smallest, bytes);
  Nanoseconds least = time(c.pipeline - 1, 0, smallest), longest;
  least = std::min(least, time(0, c.pipeline - 1, smallest));
  for (int p = 0; p + 1 < c.pipeline; ++p) {
    least = std::min({least, time(p, p + 1, smallest), time(p + 1, p, smallest)});
    longest = std::max(longest, time(p, p + 1, largest));
  }
  return {least, longest};
}

PassTimes TimesOfStages(const CostTable& costs, Nanoseconds hop) {
  PassTimes times;
  for (const StageCost& stage : costs.stages) {
    times.forward.push_back(stage.forward);
    times.backward_input.push_back(stage.backward_input);
    times.backward_weight.push_back(stage.backward_weight);
    times.recompute.push_back(stage.recompute);
  }
  times.hop = {hop};
  return times;
}

}  // namespace

bool StepCache::ChoosesOrder(const StepConfig& c) {
  return HasOption(c.scheme, kPassTimes) && !c.published_order;
}

absl::StatusOr<const Schedule*> StepCache::ScheduleOf(const StepConfig& c) {
  return ScheduleOf(c, ChoosesOrder(c));
}

absl::StatusOr<const Schedule*> StepCache::ScheduleWithin(const StepConfig& c,
                                                          const Limits& limits) {
  std::vector<Bytes>& too_little =
      too_little_[ScheduleKey(OrderConfig(c, /*timed=*/true), /*timed=*/true)];
  bool less = too_little.size() == limits.free.size() && !limits.free.empty();
  for (size_t d = 0; less && d < limits.free.size(); ++d) less = limits.free[d] <= too_little[d];
  if (less) return absl::ResourceExhaustedError(absl::StrCat(c.scheme, ": too little memory"));
  const absl::StatusOr<const Schedule*> made = ScheduleOf(c, /*timed=*/true, &limits);
  // With a limit of time it may be that, and the memory of a longer order.
  const bool memory_alone = limits.too_long == Nanoseconds(0);
  if (memory_alone && absl::IsResourceExhausted(made.status())) too_little = limits.free;
  return made;
}

absl::StatusOr<const Schedule*> StepCache::PlacementOf(const StepConfig& c) {
  if (c.has_schedule_file() || HasSchedule(c.scheme)) return ScheduleOf(c);
  StepConfig few = c;
  few.micro_batches = ChoosesOrder(c) ? 1 : std::min(c.micro_batches, 2 * c.pipeline);
  const absl::StatusOr<const Schedule*> placed = ScheduleOf(few, /*timed=*/false);
  return placed.ok() ? placed : ScheduleOf(c);
}

bool StepCache::SplitsBackwards(const StepConfig& c, const Schedule& schedule) const {
  if (HasOption(c.scheme, kSplitBackward)) return true;
  if (!c.has_schedule_file() && !HasSchedule(c.scheme)) return false;
  return std::any_of(
      schedule.order.begin(), schedule.order.end(), [](const std::vector<Action>& list) {
        return std::any_of(list.begin(), list.end(),
                           [](const Action& a) { return a.kind == ActionKind::kBackwardInput; });
      });
}

absl::StatusOr<PassTimes> StepCache::PassTimesOf(const StepConfig& c) {
  PIPELAB_ASSIGN_OR_RETURN(const int stages, NumStages(c.scheme, SchemeSizes(c)));
  PIPELAB_ASSIGN_OR_RETURN(const StepStages cut, StagesOf(c, stages));
  return TimesOfStages(*cut.costs, HopTimes(model_, c, *cut.costs).second);
}

absl::StatusOr<absl::optional<Nanoseconds>> StepCache::LongestOrder(const StepConfig& c) {
  if (!ChoosesOrder(c)) return absl::nullopt;
  const std::string key = ScheduleKey(OrderConfig(c, /*timed=*/true), /*timed=*/true);
  if (const auto found = longest_.find(key); found != longest_.end()) return found->second;
  PIPELAB_ASSIGN_OR_RETURN(const Scheme* scheme, FindScheme(c.scheme));
  SchemeParams sizes = SchemeSizes(c);
  PIPELAB_ASSIGN_OR_RETURN(sizes.times, PassTimesOf(c));
  StepConfig longer = c;
  longer.scheme = std::string(scheme->never_longer_than);
  longer.recompute = Recompute::kNone;  // Makespan adds it
  PIPELAB_ASSIGN_OR_RETURN(const Schedule* equal, ScheduleOf(longer, /*timed=*/false));
  const Nanoseconds longest(Makespan(*equal, PassLengths::Of(sizes)));
  longest_.emplace(key, longest);
  return longest;
}

absl::StatusOr<StepConfig> StepCache::SizedConfig(const StepConfig& config) {
  if (!config.has_schedule_file() || HasSchedule(config.scheme)) return config;
  StepConfig sized = config;
  PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, ReadScheduleFile(&sized));
  Keep(ScheduleKey(OrderConfig(sized, /*timed=*/false), /*timed=*/false), std::move(schedule));
  return sized;
}

// For an order that is made for its passes' times.
absl::StatusOr<SchemeParams> StepCache::TimedSizes(const StepConfig& c, const Limits* limits) {
  SchemeParams sizes = SchemeSizes(c);
  PIPELAB_ASSIGN_OR_RETURN(const int stages, NumStages(c.scheme, sizes));
  PIPELAB_ASSIGN_OR_RETURN(const StepStages cut, StagesOf(c, stages));
  const auto [least_hop, longest_hop] = HopTimes(model_, c, *cut.costs);
  sizes.times = TimesOfStages(*cut.costs, longest_hop);
  StepConfig equal = c;
  equal.recompute = Recompute::kNone;
  PIPELAB_ASSIGN_OR_RETURN(sizes.for_equal_times, ScheduleOf(equal, /*timed=*/false));
  if (limits == nullptr) return sizes;
  sizes.limits =
      MemoryOfStages(cut.partition->stages, *cut.costs, std::vector<bool>(stages, sizes.recompute));
  sizes.limits.free = limits->free;
  sizes.limits.too_long = limits->too_long;
  sizes.limits.hop = least_hop;
  return sizes;
}

absl::StatusOr<const Schedule*> StepCache::ScheduleOf(const StepConfig& config, bool timed,
                                                      const Limits* limits) {
  if (const OwnSchedule* own = OwnOf(config.scheme); own != nullptr) return &own->schedule;
  StepConfig c = OrderConfig(config, timed);
  const std::string key = ScheduleKey(c, timed);
  const auto found = schedules_.find(key);
  Made* made = found == schedules_.end() ? nullptr : &found->second;
  if (made == nullptr) {
    Schedule schedule;
    if (c.has_schedule_file()) {
      PIPELAB_ASSIGN_OR_RETURN(schedule, ReadScheduleFile(&c));
    } else if (timed) {
      PIPELAB_ASSIGN_OR_RETURN(const SchemeParams sizes, TimedSizes(c, limits));
      PIPELAB_ASSIGN_OR_RETURN(schedule, MakeSchedule(c.scheme, sizes));
    } else {
      PIPELAB_ASSIGN_OR_RETURN(schedule, MakeSchedule(c.scheme, SchemeSizes(c)));
    }
    made = Keep(key, std::move(schedule));
  }
  made->asked = ++asked_;
  return &made->schedule;
}

StepCache::Made* StepCache::Keep(const std::string& key, Schedule schedule) {
  cached_actions_ += NumActions(schedule);
  DropOldSchedules();
  return &schedules_.insert_or_assign(key, Made{std::move(schedule)}).first->second;
}

// Drops the half that was asked for longest ago while there are too many. Looking for the oldest
// one alone, again and again, would take most of a search that makes many.
void StepCache::DropOldSchedules() {
  while (cached_actions_ > kMostCachedActions && !schedules_.empty()) {
    std::vector<int64_t> asked;
    for (const auto& [key, made] : schedules_) asked.push_back(made.asked);
    const auto middle = asked.begin() + static_cast<ptrdiff_t>(asked.size() / 2);
    std::nth_element(asked.begin(), middle, asked.end());
    for (auto it = schedules_.begin(); it != schedules_.end();) {
      if (it->second.asked > *middle) {
        ++it;
        continue;
      }
      cached_actions_ -= NumActions(it->second.schedule);
      it = schedules_.erase(it);
    }
  }
}

}  // namespace pipelab
