#include "pipelines/swarm/trainer.h"

#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::Duration kPollTimeout = absl::Seconds(5);

}  // namespace

absl::Status SwarmTrainer::Run() {
  std::vector<std::thread> workers;
  for (int i = 0; i < options_.in_flight; ++i) workers.emplace_back([this] { Work(); });
  absl::Time answered = absl::Now();
  int64_t seen = 0;
  absl::Status status;
  while (!stopped_) {
    swarm::Request request;
    swarm::Reply reply;
    request.mutable_get_tasks()->set_trainer(options_.trainer);
    request.mutable_get_tasks()->set_seen(seen);
    request.mutable_get_tasks()->mutable_data()->insert(options_.settings.begin(),
                                                        options_.settings.end());
    request.mutable_get_tasks()->mutable_training()->insert(training_.begin(), training_.end());
    status = link_.Call(options_.coordinator, request, kPollTimeout, &reply);
    if (status.ok()) {
      answered = absl::Now();
      seen = reply.tasks().number();
      if (reply.tasks().stop()) break;
      status = Take(reply);
      if (!status.ok()) break;
      continue;
    }
    if (absl::Now() - answered > options_.patience || absl::IsPermissionDenied(status)) break;
    status = absl::OkStatus();
    seen = 0;
    absl::SleepFor(kLook);
  }
  stopped_ = true;
  for (std::thread& worker : workers) worker.join();
  absl::MutexLock lock(&mutex_);
  return own_fault_.ok() ? status : own_fault_;
}

// By what a micro-batch has to have, before anything is asked of peers.
absl::Status SwarmTrainer::CheckData(const swarm::Job& job) const {
  for (const char* name : {kTokens, kTargets}) {
    const DataField& field = options_.data->Field(name);
    if (field.size() == job.model().tokens() && field.limit <= job.model().vocabulary()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("this trainer's samples have ", field.size(), " ", name,
                     " of a vocabulary of ", field.limit, "; they must have ", job.model().tokens(),
                     " of ", job.model().vocabulary(), ", as in the swarm"));
  }
  return absl::OkStatus();
}

SwarmTrainer::Traffic SwarmTrainer::traffic() const {
  absl::MutexLock lock(&mutex_);
  return traffic_;
}

absl::Status SwarmTrainer::Take(const swarm::Reply& reply) {
  const swarm::Tasks& tasks = reply.tasks();
  absl::MutexLock lock(&mutex_);
  Place place = {reply.epoch(), tasks.step(), place_.visit};
  if (place.epoch != place_.epoch || layout_.boundary.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(layout_, LayoutOf(tasks.job()));
    PIPELAB_RETURN_IF_ERROR(CheckData(tasks.job()));
    job_ = tasks.job();
    training_ = SettingsOf(job_, layout_);
    ++place.visit;
    peers_.clear();  // they have other numbers, and steps may be undone
    banned_.clear();
    routers_.clear();
    unit_.clear();
    micro_batches_.clear();
  }
  place_ = place;
  micro_batches_.erase(micro_batches_.begin(), micro_batches_.lower_bound(place.Of(0)));
  TakePeers(tasks);
  for (auto& [key, of] : micro_batches_) of.missing.clear();
  for (const swarm::Task& task : tasks.tasks()) {
    MicroBatch& of = micro_batches_[{task.step(), task.micro_batch()}];
    of.inputs.resize(job_.stages());
    of.output_gradients.resize(job_.stages());
    of.has_input.resize(job_.stages());
    of.has_gradient.resize(job_.stages());
    for (int stage : task.stages()) {
      // What counts for a peer that is there was counted after this answer was made.
      const auto it = of.counted.find(stage);
      if (it == of.counted.end() || peers_.count(it->second) == 0) of.missing.insert(stage);
    }
  }
  return absl::OkStatus();
}

void SwarmTrainer::TakePeers(const swarm::Tasks& tasks) {
  unit_.resize(job_.stages());
  while (static_cast<int>(routers_.size()) < job_.stages()) {
    routers_.emplace_back(options_.seed + routers_.size());
  }
  std::map<int, swarm::PeerPlace> now;
  for (const swarm::PeerPlace& peer : tasks.peers()) {
    if (peer.stage() >= 0 && peer.stage() < job_.stages()) now[peer.peer()] = peer;
  }
  for (const auto& [id, peer] : peers_) {
    PeerRouter& router = routers_[peer.stage()];
    if (now.count(id) == 0 && router.Has(id)) router.Remove(id);
  }
  peers_ = std::move(now);
  for (const auto& [id, peer] : peers_) {
    if (banned_.count(id) == 0) AddTo(&routers_[peer.stage()], peer);
  }
}

// The first result says what a request takes. Loads so far were guesses.
void SwarmTrainer::MeasureUnit(int stage, double seconds) {
  unit_[stage] = seconds;
  PeerRouter router(options_.seed + static_cast<uint64_t>(stage));
  for (const auto& [id, peer] : peers_) {
    if (peer.stage() == stage && routers_[stage].Has(id)) AddTo(&router, peer);
  }
  routers_[stage] = router;
}

void SwarmTrainer::Work() {
  while (!stopped_) {
    Place place;
    int micro_batch = -1;
    std::set<int> missing;
    {
      absl::MutexLock lock(&mutex_);
      const auto due = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        for (const auto& [key, of] : micro_batches_) {
          if (of.busy || of.missing.empty()) continue;
          place = {place_.epoch, key.first, place_.visit};
          micro_batch = key.second;
          return true;
        }
        return false;
      };
      if (!mutex_.AwaitWithTimeout(absl::Condition(&due), kLook)) continue;
      MicroBatch& of = micro_batches_[place.Of(micro_batch)];
      of.busy = true;
      missing = of.missing;
    }
    const absl::Status ran = RunMicroBatch(place, micro_batch, missing);
    if (!ran.ok()) absl::SleepFor(kRetry);
    absl::MutexLock lock(&mutex_);
    if (IsNow(place)) micro_batches_[place.Of(micro_batch)].busy = false;
  }
}

// Aborted when the step is another one.
absl::Status SwarmTrainer::RunMicroBatch(const Place& place, int micro_batch,
                                         const std::set<int>& missing) {
  const absl::Status over = absl::AbortedError("the step is over");
  int stages = 0;
  std::vector<bool> has_input, has_gradient;
  {
    absl::MutexLock lock(&mutex_);
    if (!IsNow(place)) return over;
    stages = job_.stages();
    has_input = micro_batches_[place.Of(micro_batch)].has_input;
    has_gradient = micro_batches_[place.Of(micro_batch)].has_gradient;
  }
  const int highest = *missing.rbegin(), lowest = *missing.begin();
  // The missing stages need inputs of the highest, and what its output's gradient needs.
  int last = highest;
  while (last + 1 < stages && !has_gradient[last]) ++last;
  for (int stage = 0; stage < last; ++stage) {
    if (has_input[stage + 1]) continue;
    int peer = 0;
    PIPELAB_ASSIGN_OR_RETURN(
        swarm::PassDone done,
        Ask(place, PassOf(place, micro_batch, stage, /*backward=*/false), &peer));
    absl::MutexLock lock(&mutex_);
    if (!IsNow(place)) return over;
    MicroBatch& of = micro_batches_[place.Of(micro_batch)];
    of.inputs[stage + 1] = std::move(*done.mutable_values());
    of.has_input[stage + 1] = true;
  }
  for (int stage = last; stage >= lowest; --stage) {
    const bool wanted = missing.count(stage) > 0;
    if (!wanted && has_gradient[stage - 1]) continue;
    int peer = 0;
    const swarm::Pass pass = PassOf(place, micro_batch, stage, /*backward=*/true);
    PIPELAB_ASSIGN_OR_RETURN(swarm::PassDone done, Ask(place, pass, &peer));
    if (stage > 0) {
      absl::MutexLock lock(&mutex_);
      if (!IsNow(place)) return over;
      MicroBatch& of = micro_batches_[place.Of(micro_batch)];
      of.output_gradients[stage - 1] = std::move(*done.mutable_values());
      of.has_gradient[stage - 1] = true;
    }
    PIPELAB_RETURN_IF_ERROR(Report(place, pass, done.loss(), peer));
  }
  return absl::OkStatus();
}

}  // namespace pipelab
