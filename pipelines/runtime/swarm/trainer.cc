#include "pipelines/runtime/swarm/trainer.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(50), kRetry = absl::Milliseconds(20);
constexpr absl::Duration kPoll = absl::Seconds(5);

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
    status = link_.Call(options_.coordinator, request, kPoll, &reply);
    if (status.ok()) {
      answered = absl::Now();
      seen = reply.tasks().number();
      if (reply.tasks().stop()) break;
      Take(reply);
      continue;
    }
    if (absl::Now() - answered > options_.patience || absl::IsPermissionDenied(status)) break;
    status = absl::OkStatus();
    seen = 0;
    absl::SleepFor(kLook);
  }
  stopped_ = true;
  for (std::thread& worker : workers) worker.join();
  return status;
}

SwarmTrainer::Traffic SwarmTrainer::traffic() const {
  absl::MutexLock lock(&mutex_);
  return traffic_;
}

void SwarmTrainer::Take(const swarm::Reply& reply) {
  const swarm::Tasks& tasks = reply.tasks();
  absl::MutexLock lock(&mutex_);
  if (layout_.boundary.empty()) {
    absl::StatusOr<SwarmLayout> layout = LayoutOf(tasks.job());
    if (!layout.ok()) return;
    layout_ = *std::move(layout);
    job_ = tasks.job();
  }
  const Place place = {reply.epoch(), tasks.step()};
  if (!(place == place_)) {
    if (place.epoch != place_.epoch) {  // peers have other numbers
      peers_.clear();
      banned_.clear();
      routers_.clear();
      unit_.clear();
    }
    place_ = place;
    micro_batches_.clear();  // of a step that is committed, or undone
  }
  TakePeers(tasks);
  for (auto& [m, of] : micro_batches_) of.missing.clear();
  for (const swarm::Task& task : tasks.tasks()) {
    MicroBatch& of = micro_batches_[task.micro_batch()];
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
        for (const auto& [m, of] : micro_batches_) {
          if (of.busy || of.missing.empty()) continue;
          micro_batch = m;
          return true;
        }
        return false;
      };
      if (!mutex_.AwaitWithTimeout(absl::Condition(&due), kLook)) continue;
      place = place_;
      micro_batches_[micro_batch].busy = true;
      missing = micro_batches_[micro_batch].missing;
    }
    const absl::Status ran = RunMicroBatch(place, micro_batch, missing);
    if (!ran.ok()) absl::SleepFor(kRetry);
    absl::MutexLock lock(&mutex_);
    if (place == place_) micro_batches_[micro_batch].busy = false;
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
    has_input = micro_batches_[micro_batch].has_input;
    has_gradient = micro_batches_[micro_batch].has_gradient;
  }
  const int highest = *missing.rbegin(), lowest = *missing.begin();
  // Of those that are missing: inputs of the highest, and what its output's gradient needs.
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
    MicroBatch& of = micro_batches_[micro_batch];
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
      MicroBatch& of = micro_batches_[micro_batch];
      of.output_gradients[stage - 1] = std::move(*done.mutable_values());
      of.has_gradient[stage - 1] = true;
    }
    PIPELAB_RETURN_IF_ERROR(Report(place, pass, done.loss(), peer));
  }
  return absl::OkStatus();
}

swarm::Pass SwarmTrainer::PassOf(const Place& place, int micro_batch, int stage, bool backward) {
  swarm::Pass pass;
  pass.set_step(place.step);
  pass.set_stage(stage);
  pass.set_micro_batch(micro_batch);
  pass.set_backward(backward);
  absl::MutexLock lock(&mutex_);
  const int64_t samples = job_.micro_batch_size(), first = micro_batch * samples;
  const auto fill = [&](const char* name, google::protobuf::RepeatedField<int32_t>* ids) {
    const int field = options_.data->FindField(name);
    std::vector<int32_t> numbers(samples * options_.data->fields()[field].size());
    options_.data->FillIds(field, place.step, first, absl::MakeSpan(numbers));
    ids->Add(numbers.begin(), numbers.end());
  };
  if (stage == 0) fill(kTokens, pass.mutable_tokens());
  if (stage + 1 == job_.stages()) fill(kTargets, pass.mutable_targets());
  const auto it = micro_batches_.find(micro_batch);
  if (!IsNow(place) || it == micro_batches_.end()) return pass;  // Ask says that it is over
  if (stage > 0) *pass.mutable_input() = it->second.inputs[stage];
  if (backward && stage + 1 < job_.stages()) {
    *pass.mutable_output_gradient() = it->second.output_gradients[stage];
  }
  return pass;
}

absl::StatusOr<swarm::PeerPlace> SwarmTrainer::NextPeer(const Place& place, int stage,
                                                        double work) {
  absl::MutexLock lock(&mutex_);
  const auto due = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !IsNow(place) || !routers_[stage].empty();
  };
  while (!mutex_.AwaitWithTimeout(absl::Condition(&due), kLook)) {
    // Better those that failed once than nobody.
    for (const auto& [id, peer] : peers_) {
      if (peer.stage() != stage) continue;
      banned_.erase(id);
      AddTo(&routers_[stage], peer);
    }
  }
  if (!IsNow(place)) return absl::AbortedError("the step is over");
  return peers_.at(*routers_[stage].Route(work * (unit_[stage] > 0 ? unit_[stage] : 1)));
}

absl::Status SwarmTrainer::CheckDone(const swarm::Pass& pass, const swarm::PassDone& done) const {
  absl::MutexLock lock(&mutex_);
  const int of = pass.backward() ? pass.stage() - 1 : pass.stage();
  if (of < 0) return absl::OkStatus();
  return CheckValues(done.values(), layout_.boundary[of], job_.eight_bits());
}

absl::StatusOr<swarm::PassDone> SwarmTrainer::Ask(const Place& place, swarm::Pass pass, int* peer) {
  swarm::Request request;
  request.set_epoch(place.epoch);
  const double work = pass.backward() ? kBackwardWork : 1;
  const int stage = pass.stage();
  const auto out =
      static_cast<int64_t>(pass.input().bytes().size() + pass.output_gradient().bytes().size());
  *request.mutable_pass() = std::move(pass);
  absl::Duration limit;
  {
    absl::MutexLock lock(&mutex_);
    limit = WaitLimit(job_);
  }
  for (;;) {
    PIPELAB_ASSIGN_OR_RETURN(const swarm::PeerPlace to, NextPeer(place, stage, work));
    swarm::Reply reply;
    const absl::Time begin = absl::Now();
    absl::Status asked = link_.Call(to.address(), request, limit, &reply);
    const bool answered = asked.ok();
    if (answered) asked = CheckDone(request.pass(), reply.pass());
    if (!asked.ok()) {
      Failed(place, to.peer(), stage, asked, /*lied=*/answered);
      continue;
    }
    *peer = to.peer();
    const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
    absl::MutexLock lock(&mutex_);
    ++traffic_.requests;
    traffic_.values_out += out;
    traffic_.values_back += static_cast<int64_t>(reply.pass().values().bytes().size());
    // The peer's own word, as long as it can be true: then queues do not count.
    const double own = reply.pass().seconds();
    const double took = own > 1e-9 && own < seconds ? own : seconds;
    if (IsNow(place) && routers_[stage].Has(to.peer())) {
      if (unit_[stage] == 0) MeasureUnit(stage, took * to.speed() / work);
      routers_[stage].Measured(to.peer(), work * unit_[stage], took);
    }
    return std::move(*reply.mutable_pass());
  }
}

void SwarmTrainer::Failed(const Place& place, int peer, int stage, const absl::Status& why,
                          bool lied) {
  {
    absl::MutexLock lock(&mutex_);
    if (!IsNow(place)) return;
    ++traffic_.retries;
    const bool other = absl::IsDeadlineExceeded(why) || absl::IsResourceExhausted(why);
    if (!other && routers_[stage].Has(peer)) {
      routers_[stage].Remove(peer);
      banned_.insert(peer);
    }
  }
  // Busy, or of another step: not its fault.
  if (absl::IsResourceExhausted(why) || absl::IsFailedPrecondition(why)) {
    absl::SleepFor(kRetry);
    return;
  }
  swarm::Request request;
  swarm::Reply reply;
  request.set_epoch(place.epoch);
  swarm::Report& report = *request.mutable_report();
  report.set_step(place.step);
  report.set_stage(stage);
  report.set_peer(peer);
  report.set_fault(absl::StrCat(absl::StatusCodeToString(why.code()), ": ", why.message()));
  report.set_lied(lied);
  // If the coordinator is away, it will find out by itself.
  link_.Call(options_.coordinator, request, kPoll, &reply).IgnoreError();
}

absl::Status SwarmTrainer::Report(const Place& place, const swarm::Pass& pass, double loss,
                                  int peer) {
  swarm::Request request;
  swarm::Reply reply;
  request.set_epoch(place.epoch);
  swarm::Report& report = *request.mutable_report();
  report.set_step(place.step);
  report.set_micro_batch(pass.micro_batch());
  report.set_stage(pass.stage());
  report.set_peer(peer);
  report.set_loss(loss);
  PIPELAB_RETURN_IF_ERROR(link_.Call(options_.coordinator, request, kPoll, &reply));
  absl::MutexLock lock(&mutex_);
  if (!IsNow(place)) return absl::OkStatus();
  MicroBatch& of = micro_batches_[pass.micro_batch()];
  of.counted[pass.stage()] = reply.counted().peer();
  of.missing.erase(pass.stage());
  return absl::OkStatus();
}

}  // namespace pipelab
