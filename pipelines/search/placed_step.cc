#include "pipelines/search/placed_step.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "pipelines/cost/sharded_state.h"
#include "pipelines/cost/state_walk.h"
#include "pipelines/ir/sharding.h"
#include "pipelines/step/execution_costs.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::Status PlacedStep::Set(const StepConfig& c, const Schedule& schedule) {
  StepConfig shared = c;
  shared.sharding = Sharding::kReplicated;
  shared.shards = 0;
  shared.overlap_data = true;
  std::string key = shared.ToString();
  if (key != key_) {
    key_.clear();
    PIPELAB_ASSIGN_OR_RETURN(const StepStages stages, cache_.StagesOf(c, schedule.num_stages()));
    PIPELAB_ASSIGN_OR_RETURN(order_.schedule, WithStages(schedule, stages.partition->stages));
    costs_ = *stages.costs;
    costs_.edge_bytes.resize(order_.schedule.stages.edges.size());  // a chain's carry nothing
    costs_.overlap = c.overlap_pipeline;
    costs_.steady_overlap = c.steady_overlap;
    costs_.divided_messages = c.divided_messages();
    const StepModel& model = cache_.model();
    network_.emplace(model.cluster,
                     GridOfStep(model, shared, MembersOf(model, shared), LargestMessage(costs_)));
    AddExecutionCosts(*network_, model, c, &costs_);
    order_.calls = LoweringOf(c).calls;
    hops_.assign(static_cast<size_t>(c.pipeline) * c.pipeline, absl::nullopt);
    key_ = std::move(key);
  }
  config_ = c;
  order_.sharding = c.sharding;
  order_.devices_per_member = c.sharing();
  order_.expert_copies = static_cast<int>(c.split().expert_copies());
  SetRings();
  SetStates();
  return absl::OkStatus();
}

// The same for all schemes on a grid.
void PlacedStep::SetRings() {
  const StepConfig& c = config_;
  std::vector<Rings>& rings = rings_of_grid_[{c.pipeline, c.tensor, c.context, c.data, c.shards,
                                              c.split().expert_copies(), c.ranks}];
  if (rings.empty()) {
    for (int p = 0; p < c.pipeline; ++p) {
      rings.push_back({network_->DataRing(p, c.shards), network_->ExpertRing(p, c.shards)});
    }
  }
  rings_ = &rings;
}

void PlacedStep::SetStates() {
  const Schedule& s = order_.schedule;
  states_.clear();
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    const StageMemory& memory = costs_.stages[stage].memory;
    Shard shard = ShardOf(order_, {s.placement.groups[0][stage][0], 0, stage});
    const Bytes first = StateOf(memory, shard).always.total();
    if (order_.sharding == Sharding::kOptimizer) shard.index = -1;
    states_.push_back({first, StateOf(memory, shard).always.total()});
  }
}

const PathCost& PlacedStep::Hop(int from, int to) {
  absl::optional<PathCost>& hop = hops_[static_cast<size_t>(from) * config_.pipeline + to];
  if (!hop.has_value()) hop = network_->Message(from, to);
  return *hop;
}

// The time of the data-parallel group's gather.
Nanoseconds PlacedStep::GatherTime(const StageCopy& copy) const {
  const Gather gather{{copy}};
  return TimeOfRings(copy.device, Collective::kAllGather, GatherBytes(costs_, order_, gather),
                     ExpertGatherBytes(costs_, order_, gather));
}

Nanoseconds PlacedStep::LeastStepTime() const {
  absl::optional<Nanoseconds> least;
  for (const std::vector<StageCopy>& copies : Copies()) {
    Nanoseconds time;
    for (const StageCopy& copy : copies) time += StepTime(copy);
    if (!least.has_value() || time < *least) least = time;
  }
  return least.value_or(Nanoseconds(0));
}

Nanoseconds PlacedStep::CollectivesOfRuns(int device) const {
  Nanoseconds time;
  if (!one_group() || !ShardsGradients(config_.sharding)) return time;
  const Schedule& s = order_.schedule;
  if (config_.sharding == Sharding::kFully) {
    for (const StageRun& run : JoinForPrefetch(WeightRuns(s, device, config_.residency))) {
      time += GatherTime({device, run.replica, run.stage});
    }
  }
  for (const StageRun& run : GradientRuns(s, device, config_.residency)) {
    time += ReductionTime({device, run.replica, run.stage});
  }
  return time;
}

std::vector<std::vector<StageCopy>> PlacedStep::Copies() const {
  const Schedule& s = order_.schedule;
  std::vector<std::vector<StageCopy>> copies(s.num_devices());
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    for (int r = 0; r < s.placement.num_replicas(); ++r) {
      const int d = s.placement.groups[r][stage][0];
      copies[d].push_back({d, r, stage});
    }
  }
  return copies;
}

Nanoseconds PlacedStep::End(const std::vector<StageCopy>& copies, const OrderWalk& walk) const {
  Nanoseconds end = walk.devices[copies[0].device].end;
  if (one_group()) end = std::max(end, EndOfReductions(copies, walk));
  const bool gathers = one_group() && (config_.sharding == Sharding::kOptimizer ||
                                       config_.sharding == Sharding::kGradients);
  Nanoseconds gathered;
  for (const StageCopy& copy : copies) {
    end += StepTime(copy);
    if (gathers) gathered = std::max(gathered, end) + GatherTime(copy);
  }
  return std::max(end, gathered);
}

Bytes PlacedStep::StateOfDevice(const std::vector<StageCopy>& copies) const {
  Bytes always;
  int before = -1;
  for (const StageCopy& copy : copies) {
    const State& state = states_[copy.stage];
    always += copy.stage == before ? state.again : state.first;
    before = copy.stage;
  }
  return always;
}

Nanoseconds PlacedStep::StepTime(const StageCopy& copy) const {
  const Nanoseconds whole = costs_.stages[copy.stage].step;
  if (order_.sharding == Sharding::kReplicated) return whole;
  return Nanoseconds(
      std::llround(static_cast<double>(whole.value()) * StepShare(costs_, order_, copy)));
}

Nanoseconds PlacedStep::ReductionTime(const StageCopy& copy) const {
  Reduction reduction;
  reduction.members = {copy};
  reduction.scatter = config_.sharding != Sharding::kReplicated;
  return TimeOfRings(
      copy.device, reduction.scatter ? Collective::kReduceScatter : Collective::kAllReduce,
      ReductionBytes(costs_, order_, reduction), ExpertReductionBytes(costs_, order_, reduction));
}

// Rounded down: it is a bound.
Nanoseconds PlacedStep::TimeOfRings(int device, Collective kind, Bytes bytes,
                                    Bytes of_experts) const {
  const Rings& rings = (*rings_)[device];
  const Nanoseconds time = network_->CallOverhead() +
                           RingTime(rings.all, config_.sharing(), kind, bytes) - Nanoseconds(1);
  const int64_t same = config_.sharing() / order_.expert_copies;
  if (of_experts == Bytes(0) || same == 1) return time;
  return time + network_->CallOverhead() + RingTime(rings.experts, same, kind, of_experts) -
         Nanoseconds(1);
}

Nanoseconds PlacedStep::EndOfReductions(const std::vector<StageCopy>& copies,
                                        const OrderWalk& walk) const {
  const bool early = config_.overlap_data || ShardsGradients(config_.sharding);
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

}  // namespace pipelab
