#include "pipelines/ir/collective_writer.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "pipelines/ir/versions.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

Action StepOf(int stage) {
  Action a;
  a.kind = ActionKind::kStep;
  a.stage = static_cast<int16_t>(stage);
  return a;
}

std::vector<StageCopy> CopiesOn(const std::vector<int>& devices, int replica, int stage) {
  std::vector<StageCopy> copies;
  for (int d : devices) copies.push_back({d, replica, stage});
  return copies;
}

// How many replicas have a copy of the stage's parameters.
int OwnReplicas(const Schedule& s, int stage) {
  if (s.Prepares(stage)) return 0;
  return s.IsOneCopy(stage) ? 1 : s.placement.num_replicas();
}

bool AddsGradient(const Action& a) {
  return a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardWeight;
}

}  // namespace

absl::StatusOr<CollectiveWriter> CollectiveWriter::Make(Program* program,
                                                        const LoweringOptions& options) {
  CollectiveWriter writer(program, options);
  PIPELAB_RETURN_IF_ERROR(writer.Prepare());
  return writer;
}

absl::Status CollectiveWriter::Prepare() {
  const Schedule& s = schedule();
  own_steps_ = HasOwnSteps(s);
  eager_ = options_.eager_reductions.value_or(s.eager_reductions) && options_.step && !own_steps_;
  sharded_gradients_ = ShardsGradients(options_.sharding);
  if (own_steps_) PIPELAB_RETURN_IF_ERROR(CheckOwnSteps(s, options_));
  if (sharded_gradients_) PIPELAB_RETURN_IF_ERROR(CheckSpmdGroups(s, options_));
  group_of_.resize(s.num_devices(), -1);
  released_.resize(s.num_devices(), 0);
  if (sharded_gradients_ || own_steps_) {
    groups_ = MakeSpmdGroups(s, options_);
    progress_.resize(groups_.size());
    for (size_t t = 0; t < groups_.size(); ++t) {
      for (int d : groups_[t].devices) group_of_[d] = static_cast<int>(t);
    }
  }
  visited_.resize(s.num_devices(), 0);
  gradients_left_.resize(s.num_stages(), 0);
  for (const std::vector<Action>& order : s.order) {
    for (const Action& a : order) gradients_left_[a.stage] += AddsGradient(a);
  }
  pending_.resize(s.num_stages());
  reduced_.resize(s.num_stages(), false);
  tie_reduced_.resize(options_.ties.size(), false);
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    sets_left_.push_back(SetsOf(stage).size());
  }
  p_->sharding = options_.sharding;
  p_->shards = options_.shards;
  return absl::OkStatus();
}

std::vector<StageCopy> CollectiveWriter::CopiesOf(const std::vector<int>& stages) const {
  std::vector<StageCopy> copies;
  for (int stage : stages) {
    for (int r = 0; r < OwnReplicas(schedule(), stage); ++r) {
      for (int d : schedule().placement.groups[r][stage]) copies.push_back({d, r, stage});
    }
  }
  return copies;
}

std::vector<std::vector<StageCopy>> CollectiveWriter::SetsOf(int stage) const {
  if (!sharded_gradients_ && options_.shards == 0) return {CopiesOf({stage})};
  const Placement& placement = schedule().placement;
  std::vector<std::vector<StageCopy>> sets;
  for (int r = 0; r < OwnReplicas(schedule(), stage); ++r) {
    for (const std::vector<int>& set : SharingSets(placement.groups[r][stage], options_.shards)) {
      sets.push_back(CopiesOn(set, r, stage));
    }
  }
  return sets;
}

void CollectiveWriter::AppendForAll(const std::vector<StageCopy>& members, OpCode op, int32_t id) {
  std::set<int> devices;  // one with several copies joins once
  for (const StageCopy& m : members) {
    if (!devices.insert(m.device).second) continue;
    AppendInstruction(p_, m.device, op, m.replica, StepOf(m.stage), id);
  }
}

int32_t CollectiveWriter::Reduce(std::string parameter, std::vector<StageCopy> members,
                                 bool scatter) {
  const int32_t id = static_cast<int32_t>(p_->reductions.size());
  p_->reductions.push_back({std::move(parameter), std::move(members), scatter});
  awaited_.push_back(false);
  AppendForAll(p_->reductions[id].members, OpCode::kReduce, id);
  return id;
}

void CollectiveWriter::ReduceStage(int stage) {
  if (reduced_[stage] || sharded_gradients_) return;
  reduced_[stage] = true;
  for (std::vector<StageCopy>& set : SetsOf(stage)) {
    if (set.size() < 2) continue;
    pending_[stage].push_back(
        Reduce("", std::move(set), options_.sharding == Sharding::kOptimizer));
  }
}

void CollectiveWriter::ReduceTie(size_t tie) {
  if (tie_reduced_[tie]) return;
  tie_reduced_[tie] = true;
  const std::set<int> stages(options_.ties[tie].stages.begin(), options_.ties[tie].stages.end());
  std::vector<StageCopy> copies = CopiesOf(std::vector<int>(stages.begin(), stages.end()));
  if (copies.size() < 2) return;
  const int32_t id = Reduce(options_.ties[tie].parameter, std::move(copies), /*scatter=*/false);
  for (int stage : stages) pending_[stage].push_back(id);
}

// The reduction of a stage stands where its last weight gradient does, whichever device has that.
void CollectiveWriter::CountGradient(int stage) {
  if (--gradients_left_[stage] > 0 || !eager_) return;
  ReduceStage(stage);
  for (size_t t = 0; t < options_.ties.size(); ++t) {
    const std::vector<int>& stages = options_.ties[t].stages;
    if (std::all_of(stages.begin(), stages.end(),
                    [&](int other) { return gradients_left_[other] == 0; })) {
      ReduceTie(t);
    }
  }
}

void CollectiveWriter::BeginGather(const SpmdGroup& group, Progress* at) {
  const StageRun& run = group.weights[at->gathers.size()];
  const int32_t id = static_cast<int32_t>(p_->gathers.size());
  p_->gathers.push_back({CopiesOn(group.devices, run.replica, run.stage)});
  at->gathers.push_back(id);
  AppendForAll(p_->gathers[id].members, OpCode::kGather, id);
}

void CollectiveWriter::Before(int device, int32_t position) {
  if (group_of_[device] < 0) return;
  const SpmdGroup& group = groups_[group_of_[device]];
  Progress& at = progress_[group_of_[device]];
  const Action& a = schedule().order[device][position];
  // True for the first device that comes to this place; then all others are about to.
  const bool weights =
      at.awaited < group.weights.size() && group.weights[at.awaited].begin == position;
  const bool step = a.kind == ActionKind::kStep && at.stepped < position;
  if (!weights && !step) return;
  for (int d : group.devices) CHECK_EQ(visited_[d], position) << "the group is not in lockstep";
  if (step) {
    at.stepped = position;
    AwaitReductions({Reduce("", CopiesOn(group.devices, 0, a.stage), /*scatter=*/false)});
    return;
  }
  if (at.gathers.size() == at.awaited) BeginGather(group, &at);
  const int32_t id = at.gathers[at.awaited++];
  AppendForAll(p_->gathers[id].members, OpCode::kGatherWait, id);
  if (options_.overlap && at.gathers.size() < group.weights.size()) BeginGather(group, &at);
}

void CollectiveWriter::After(int device, int32_t position) {
  ++visited_[device];
  const Action& a = schedule().order[device][position];
  if (group_of_[device] >= 0) {
    const SpmdGroup& group = groups_[group_of_[device]];
    Progress& at = progress_[group_of_[device]];
    size_t& released = released_[device];
    if (released < group.weights.size() &&
        group.weights[group.weights_by_end[released]].end == position) {
      const int32_t run = group.weights_by_end[released++];
      const StageRun& r = group.weights[run];
      AppendInstruction(p_, device, OpCode::kRelease, r.replica, StepOf(r.stage), at.gathers[run]);
    }
    if (at.reduced < group.gradients_by_end.size() &&
        group.gradients_by_end[at.reduced].end == position &&
        ++at.finished == static_cast<int>(group.devices.size())) {
      FinishRunOfGradients(group, &at);
    }
  }
  if (AddsGradient(a)) CountGradient(a.stage);
}

// The last device has come to the end of the run. What is summed between sets follows the sum of
// this run in each set: lists of all sets are then alike.
void CollectiveWriter::FinishRunOfGradients(const SpmdGroup& group, Progress* at) {
  at->finished = 0;
  const absl::optional<int> summed = at->pending >= 0 ? AwaitRun(group, at) : absl::nullopt;
  const StageRun& run = group.gradients_by_end[at->reduced++];
  at->pending = Reduce("", CopiesOn(group.devices, run.replica, run.stage), /*scatter=*/true);
  if (summed.has_value()) ReduceBetweenSets(*summed);
  if (!options_.overlap) AwaitRun(group, at);
}

// Once the last run of a stage is summed in all sets, sums between these go on beside what follows:
// the stage, then. Replicas have lists of their own: their sums wait for the end.
absl::optional<int> CollectiveWriter::AwaitRun(const SpmdGroup& group, Progress* at) {
  AwaitReductions({std::exchange(at->pending, -1)});
  const auto run = group.gradients_by_end.begin() + static_cast<int64_t>(at->reduced) - 1;
  const bool last = std::none_of(run + 1, group.gradients_by_end.end(),
                                 [&](const StageRun& later) { return later.stage == run->stage; });
  const bool apart = schedule().placement.num_replicas() > 1;
  if (!last || !options_.step || !options_.overlap || apart) return absl::nullopt;
  return --sets_left_[run->stage] == 0 ? absl::make_optional(run->stage) : absl::nullopt;
}

void CollectiveWriter::AwaitReductions(const std::vector<int32_t>& reductions) {
  for (int32_t id : reductions) {
    if (awaited_[id]) continue;
    awaited_[id] = true;
    AppendForAll(p_->reductions[id].members, OpCode::kReduceWait, id);
  }
}

// Equal parts are summed.
void CollectiveWriter::ReduceBetweenSets(int stage) {
  sets_left_[stage] = 0;
  const std::vector<std::vector<StageCopy>> sets = SetsOf(stage);
  if (sets.size() < 2) return;
  AwaitReductions(pending_[stage]);
  for (size_t part = 0; part < sets[0].size(); ++part) {
    std::vector<StageCopy> copies;
    for (const std::vector<StageCopy>& set : sets) copies.push_back(set[part]);
    pending_[stage].push_back(Reduce("", std::move(copies), /*scatter=*/false));
  }
}

// All devices go through the rest in one order, stage by stage.
void CollectiveWriter::Finish() {
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (progress_[g].pending < 0) continue;
    if (const auto summed = AwaitRun(groups_[g], &progress_[g])) ReduceBetweenSets(*summed);
  }
  if (!options_.step || own_steps_ || schedule().forward_only) return;
  for (int stage = 0; stage < schedule().num_stages(); ++stage) ReduceStage(stage);
  for (int stage = 0; stage < schedule().num_stages(); ++stage) {
    if (sets_left_[stage] > 0 && !schedule().weights_travel) ReduceBetweenSets(stage);
  }
  for (size_t t = 0; t < options_.ties.size(); ++t) ReduceTie(t);
  StepAll();
}

// Appends the sum of the squares of all gradients, by all devices, with nothing left to be added to
// them.
void CollectiveWriter::SumSquares() {
  if (options_.norm_values == 0) return;
  std::vector<int> stages(schedule().num_stages());
  std::iota(stages.begin(), stages.end(), 0);
  p_->norm = NormSum{options_.norm_values, CopiesOf(stages), options_.norm_rounds};
  AppendForAll(p_->norm->members, OpCode::kNorm, 0);
  AppendForAll(p_->norm->members, OpCode::kNormWait, 0);
}

void CollectiveWriter::StepAll() {
  const bool whole_values =
      options_.sharding == Sharding::kOptimizer || options_.sharding == Sharding::kGradients;
  // No member of a sum is kept waiting by another's steps.
  for (const std::vector<int32_t>& reductions : pending_) AwaitReductions(reductions);
  SumSquares();
  std::vector<int32_t> gathers;
  for (int stage = 0; stage < schedule().num_stages(); ++stage) {
    for (const StageCopy& c : CopiesOf({stage})) {
      AppendInstruction(p_, c.device, OpCode::kStep, c.replica, StepOf(stage), -1);
    }
    if (!whole_values) continue;
    for (std::vector<StageCopy>& members : SetsOf(stage)) {
      if (members.size() < 2) continue;
      const int32_t id = static_cast<int32_t>(p_->gathers.size());
      p_->gathers.push_back({std::move(members)});
      AppendForAll(p_->gathers[id].members, OpCode::kGather, id);
      gathers.push_back(id);
    }
  }
  for (int32_t id : gathers) AppendForAll(p_->gathers[id].members, OpCode::kGatherWait, id);
}

}  // namespace pipelab
