#include "pipelines/ir/collective_writer.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
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
  sharded_gradients_ =
      options_.sharding == Sharding::kGradients || options_.sharding == Sharding::kFully;
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
  p_->sharding = options_.sharding;
  return absl::OkStatus();
}

std::vector<StageCopy> CollectiveWriter::CopiesOf(const std::vector<int>& stages) const {
  const Placement& placement = schedule().placement;
  std::vector<StageCopy> copies;
  for (int stage : stages) {
    for (int r = 0; r < placement.num_replicas(); ++r) {
      for (int d : placement.groups[r][stage]) copies.push_back({d, r, stage});
    }
  }
  return copies;
}

std::vector<StageCopy> CollectiveWriter::GroupOf(int replica, int stage) const {
  std::vector<StageCopy> copies;
  for (int d : schedule().placement.groups[replica][stage]) copies.push_back({d, replica, stage});
  return copies;
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
  std::vector<StageCopy> copies = CopiesOf({stage});
  if (copies.size() < 2) return;
  pending_[stage].push_back(
      Reduce("", std::move(copies), options_.sharding == Sharding::kOptimizer));
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
  p_->gathers.push_back({GroupOf(run.replica, run.stage)});
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
    AwaitReductions({Reduce("", GroupOf(0, a.stage), /*scatter=*/false)});
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

// The last device has come to the end of the run.
void CollectiveWriter::FinishRunOfGradients(const SpmdGroup& group, Progress* at) {
  at->finished = 0;
  const StageRun& run = group.gradients_by_end[at->reduced++];
  if (at->pending >= 0) AwaitReductions({at->pending});
  at->pending = Reduce("", GroupOf(run.replica, run.stage), /*scatter=*/true);
  if (options_.overlap) return;
  AwaitReductions({at->pending});
  at->pending = -1;
}

void CollectiveWriter::AwaitReductions(const std::vector<int32_t>& reductions) {
  for (int32_t id : reductions) {
    if (awaited_[id]) continue;
    awaited_[id] = true;
    AppendForAll(p_->reductions[id].members, OpCode::kReduceWait, id);
  }
}

// Replicas have the parts of their own groups: equal parts are summed.
void CollectiveWriter::ReduceReplicas() {
  const Placement& placement = schedule().placement;
  if (placement.num_replicas() < 2) return;
  for (int stage = 0; stage < schedule().num_stages(); ++stage) {
    std::vector<std::vector<int>> groups;
    for (const auto& replica : placement.groups) {
      groups.push_back(replica[stage]);
      std::sort(groups.back().begin(), groups.back().end());
    }
    for (size_t part = 0; part < groups[0].size(); ++part) {
      std::vector<StageCopy> copies;
      for (size_t r = 0; r < groups.size(); ++r) {
        copies.push_back({groups[r][part], static_cast<int>(r), stage});
      }
      pending_[stage].push_back(Reduce("", std::move(copies), /*scatter=*/false));
    }
  }
}

// All devices go through the rest in one order, stage by stage.
void CollectiveWriter::Finish() {
  for (const Progress& at : progress_) {
    if (at.pending >= 0) AwaitReductions({at.pending});
  }
  if (!options_.step || own_steps_ || schedule().forward_only) return;
  if (sharded_gradients_) ReduceReplicas();
  for (int stage = 0; stage < schedule().num_stages(); ++stage) ReduceStage(stage);
  for (size_t t = 0; t < options_.ties.size(); ++t) ReduceTie(t);
  StepAll();
}

// Of all gradients, by all devices, with nothing left to be added to them.
void CollectiveWriter::SumSquares() {
  if (options_.norm_values == 0) return;
  std::vector<int> stages(schedule().num_stages());
  std::iota(stages.begin(), stages.end(), 0);
  p_->norm = NormSum{options_.norm_values, CopiesOf(stages), options_.norm_rounds};
  AppendForAll(p_->norm->members, OpCode::kNorm, 0);
  AppendForAll(p_->norm->members, OpCode::kNormWait, 0);
}

void CollectiveWriter::StepAll() {
  const Placement& placement = schedule().placement;
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
    // Parts of the optimizer are of all copies, parts of gradients of a group.
    std::vector<std::vector<StageCopy>> owners;
    if (!sharded_gradients_) owners.push_back(CopiesOf({stage}));
    for (int r = 0; sharded_gradients_ && r < placement.num_replicas(); ++r) {
      owners.push_back(GroupOf(r, stage));
    }
    for (std::vector<StageCopy>& members : owners) {
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
