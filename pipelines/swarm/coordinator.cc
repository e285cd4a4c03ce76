#include "pipelines/swarm/coordinator.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "models/checkpoint/safetensors.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::Duration kFarewell = absl::Seconds(2);
constexpr absl::Duration kLook = absl::Milliseconds(50);  // how often waits look around

// What one stage has of the whole state.
std::string StateOfStage(const TrainingState& state, const swarm::Job& job,
                         const SwarmLayout& layout, int stage) {
  ModelGraph part;
  for (int layer : layout.partition.layers[stage]) {
    part.layers.push_back(layout.graph.layers[layer]);
  }
  Safetensors file;
  for (const StateEntry& entry : StateEntries(part, TargetOf(job, layout).optimizer_state)) {
    file.tensors[entry.key] = state.tensors.at(entry.key);
  }
  return SerializeSafetensors(file);
}

// Changes with each WriteFileAtomically, whoever calls it; empty where there is no file. The file
// is opened, because only that asks a network's disk for what other machines have done.
std::string MarkOf(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return "";
  struct stat s = {};
  const bool known = fstat(file, &s) == 0 && S_ISREG(s.st_mode);
  close(file);
  if (!known) return "";
  return absl::StrCat(s.st_ino, " ", s.st_size, " ", s.st_mtim.tv_sec, " ", s.st_mtim.tv_nsec);
}

}  // namespace

// With what follows from the others: steps with fresh weights, the network, and all settings.
CoordinatorOptions WholeOptions(CoordinatorOptions options, const SwarmLayout& layout) {
  if (options.job.delay() > 0) options.job.set_fresh_every(options.checkpoint_every);
  options.job.set_network(NetworkOf(layout.graph));
  options.settings.merge(SwarmSettings(options.data));
  options.settings.merge(SettingsOf(options.job, layout));
  return options;
}

SwarmCoordinator::SwarmCoordinator(SwarmLink* link, const CoordinatorOptions& options,
                                   SwarmLayout layout)
    : link_(*link),
      options_(WholeOptions(options, layout)),
      layout_(std::move(layout)),
      epoch_(options.epoch) {}

absl::StatusOr<std::unique_ptr<SwarmCoordinator>> SwarmCoordinator::Create(
    SwarmLink* link, const CoordinatorOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(SwarmLayout layout, LayoutOf(options.job));
  std::unique_ptr<SwarmCoordinator> made(new SwarmCoordinator(link, options, std::move(layout)));
  absl::MutexLock lock(&made->mutex_);
  const StateTarget target = TargetOf(options.job, made->layout_);
  made->saved_ = EmptyState(target, /*step=*/0);
  if (!options.checkpoint.empty()) {
    PIPELAB_RETURN_IF_ERROR(CheckWritableFile("--checkpoint", options.checkpoint));
  }
  made->file_mark_ = MarkOf(options.checkpoint);
  if (!options.checkpoint.empty() && PathExists(options.checkpoint)) {
    PIPELAB_ASSIGN_OR_RETURN(made->saved_, ReadTrainingState(options.checkpoint));
    const std::string other =
        FirstDifference(made->options_.settings, made->saved_.settings, "the checkpoint");
    if (!other.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(options.checkpoint, ": ", other));
    }
    PIPELAB_RETURN_IF_ERROR(CheckState(made->saved_, target));
    const int64_t step = made->saved_.step;
    if (UpdateRuleOf(made->options_.job).VersionOf(step) != step) {
      return absl::InvalidArgumentError(
          absl::StrCat(options.checkpoint, ": is of step ", step,
                       ", where delayed updates need older weights, too; take one of a multiple of "
                       "--checkpoint_every=",
                       options.checkpoint_every));
    }
  }
  made->GoBack();
  return made;
}

void SwarmCoordinator::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

std::map<int64_t, double> SwarmCoordinator::losses() const {
  absl::MutexLock lock(&mutex_);
  return losses_;
}

TrainingState SwarmCoordinator::saved() const {
  absl::MutexLock lock(&mutex_);
  return saved_;
}

// Everything from the checkpoint on; who was there joins again.
void SwarmCoordinator::GoBack() {
  members_.clear();
  moving_.clear();
  books_.clear();
  step_ = ledger_begin_ = saved_.step;
  ledger_ = std::make_unique<StepLedger>(options_.job.micro_batches(), options_.job.stages(),
                                         UpdateRuleOf(options_.job));
  losses_.erase(losses_.lower_bound(step_), losses_.end());
  progress_ = absl::Now();
  Log("start step=", step_, " stages=", options_.job.stages(),
      " micro_batches=", options_.job.micro_batches());
  Changed();
}

absl::Status SwarmCoordinator::Run() {
  const TrainingState from = saved();
  absl::Status status = from.tensors.empty() ? absl::OkStatus() : Write(from);
  {
    absl::MutexLock lock(&mutex_);
    progress_ = rebalanced_ = absl::Now();
  }
  while (status.ok()) {
    bool done = false;
    {
      absl::MutexLock lock(&mutex_);
      if (stopped_ || saved_.step == options_.job.steps()) break;
      done = step_ == options_.job.steps();
      if (done && StageIsLost()) {  // and with it what has not been saved
        ++epoch_;
        GoBack();
        continue;
      }
    }
    status = done ? Save() : RunStep();
  }
  if (absl::IsFailedPrecondition(status)) return status;  // Another one continues the training.
  absl::MutexLock lock(&mutex_);
  finished_ = true;
  averaging_ = false;
  books_.clear();
  Changed();
  // All who are there hear it.
  const auto told = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return members_.empty() && trainers_.empty();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&told), kFarewell);
  return status;
}

// All that may begin. The ledger counts from a step with fresh weights, so the rule is the same.
void SwarmCoordinator::BeginSteps() {
  const int micro_batches = options_.job.micro_batches();
  while (ledger_->MayBegin() && ledger_begin_ + ledger_->next_step() < options_.job.steps()) {
    Books& books = books_[ledger_begin_ + ledger_->next_step()];
    for (int i = 0; i < micro_batches; ++i) ledger_->Begin();
    books.counted.assign(options_.job.stages(), std::vector<int>(micro_batches, -1));
    books.losses.assign(micro_batches, 0);
  }
  if (options_.rebalance_every > absl::ZeroDuration() &&
      absl::Now() - rebalanced_ > options_.rebalance_every) {
    rebalanced_ = absl::Now();
    MoveOne();
  }
  Changed();
}

absl::Status SwarmCoordinator::RunStep() {
  const absl::Time begin = absl::Now();
  {
    absl::MutexLock lock(&mutex_);
    BeginSteps();
  }
  for (;;) {
    PIPELAB_RETURN_IF_ERROR(AwaitGradients());
    {
      absl::MutexLock lock(&mutex_);
      if (stopped_) return absl::OkStatus();
      if (StageIsLost()) {
        ++epoch_;
        GoBack();
        return absl::OkStatus();
      }
      averaging_ = true;
      ++attempt_;
    }
    if (Average() && Commit(begin)) break;
    absl::MutexLock lock(&mutex_);
    averaging_ = false;
    Changed();
  }
  {
    absl::MutexLock lock(&mutex_);
    if (step_ % options_.checkpoint_every != 0) return absl::OkStatus();
  }
  return Save();
}

// All that had its state are gone, and the checkpoint is of an earlier step.
bool SwarmCoordinator::StageIsLost() const {
  if (step_ == saved_.step) return false;
  std::vector<bool> has(options_.job.stages());
  for (const auto& [peer, m] : members_) {
    if (IsReady(m)) has[m.stage] = true;
  }
  return std::find(has.begin(), has.end(), false) != has.end();
}

absl::Status SwarmCoordinator::AwaitGradients() {
  absl::MutexLock lock(&mutex_);
  const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ || StageIsLost() || ledger_->MayAverage();
  };
  while (!mutex_.AwaitWithTimeout(absl::Condition(&due), kLook)) {
    DropSilent();
    FillEmptyStage();
    if (absl::Now() - progress_ <= options_.patience) continue;
    return absl::UnavailableError(absl::StrCat("step ", step_, ": no gradient has come for ",
                                               absl::FormatDuration(options_.patience), ", of ",
                                               members_.size(), " peers"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> SwarmCoordinator::StateOf(int stage) {
  absl::Status last = absl::UnavailableError("there are no peers");
  std::map<int, std::string> peers;
  swarm::Request request;
  request.mutable_get_state()->set_stage(stage);
  int64_t step = 0;
  {
    absl::MutexLock lock(&mutex_);
    request.set_epoch(epoch_);
    step = step_;
    for (const auto& [peer, m] : members_) {
      if (m.stage == stage && IsReady(m)) peers[peer] = m.address;
    }
  }
  for (const auto& [peer, address] : peers) {
    swarm::Reply reply;
    last = link_.Call(address, request, WaitLimit(options_.job), &reply);
    if (last.ok() && reply.state().step() == step) return reply.state().safetensors();
    absl::MutexLock lock(&mutex_);
    Drop(peer, absl::StrCat("state: ", last.ok() ? "of another step" : last.message()));
  }
  return last;
}

// Where a stage's peers are all gone, the checkpoint stays as it was, and the next step goes back.
absl::Status SwarmCoordinator::Save() {
  TrainingState state;
  {
    absl::MutexLock lock(&mutex_);
    if (saved_.step == step_) return absl::OkStatus();
    state = EmptyState(TargetOf(options_.job, layout_), step_);
  }
  state.settings = options_.settings;
  for (int stage = 0; stage < options_.job.stages(); ++stage) {
    const absl::StatusOr<std::string> part = StateOf(stage);
    if (!part.ok()) return absl::OkStatus();
    PIPELAB_ASSIGN_OR_RETURN(const Safetensors file, ParseSafetensors(*part, "a peer's state"));
    for (const auto& [key, tensor] : file.tensors) state.tensors[key] = tensor;
  }
  PIPELAB_RETURN_IF_ERROR(CheckState(state, TargetOf(options_.job, layout_)));
  PIPELAB_RETURN_IF_ERROR(Write(state));
  absl::MutexLock lock(&mutex_);
  saved_ = std::move(state);
  return absl::OkStatus();
}

absl::Status SwarmCoordinator::Write(const TrainingState& state) {
  if (options_.checkpoint.empty()) return absl::OkStatus();
  if (const std::string mark = MarkOf(options_.checkpoint); !mark.empty() && mark != file_mark_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--checkpoint=", options_.checkpoint,
        ": another coordinator has written it meanwhile, so this one ends; let one run "
        "at a time, or give another path"));
  }
  PIPELAB_RETURN_IF_ERROR(options_.write(options_.checkpoint, state));
  file_mark_ = MarkOf(options_.checkpoint);
  absl::MutexLock lock(&mutex_);
  Log("save step=", state.step);
  return absl::OkStatus();
}

absl::Status SwarmCoordinator::ServeState(int stage, swarm::State* state) const {
  TrainingState saved;
  {
    absl::MutexLock lock(&mutex_);
    if (stage < 0 || stage >= options_.job.stages()) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", stage));
    }
    saved = saved_;
  }
  if (saved.tensors.empty()) return absl::FailedPreconditionError("the seed makes the state");
  state->set_step(saved.step);
  *state->mutable_safetensors() = StateOfStage(saved, options_.job, layout_, stage);
  // Only when the last step is done is there no older state: nothing computes with it any more.
  if (UpdateRuleOf(options_.job).VersionOf(saved.step) != saved.step) {
    *state->mutable_older() = state->safetensors();
  }
  return absl::OkStatus();
}

}  // namespace pipelab
