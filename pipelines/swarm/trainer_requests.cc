// The part of SwarmTrainer that asks: peers for passes, the coordinator to count them.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "pipelines/swarm/trainer.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::Duration kReport = absl::Seconds(5);
constexpr int kMostRefusals = 3;

}  // namespace

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
  const auto it = micro_batches_.find(place.Of(micro_batch));
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

absl::Status SwarmTrainer::CheckDone(const Place& place, const swarm::Pass& pass,
                                     const swarm::PassDone& done) const {
  absl::MutexLock lock(&mutex_);
  if (!IsNow(place)) return absl::AbortedError("the step is over");
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
    if (answered) asked = CheckDone(place, request.pass(), reply.pass());
    if (!asked.ok()) {
      if (!answered && absl::IsInvalidArgument(asked)) Refused(asked);
      Failed(place, to.peer(), stage, asked, /*lied=*/answered, absl::Now() - begin);
      continue;
    }
    *peer = to.peer();
    const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
    absl::MutexLock lock(&mutex_);
    ++traffic_.requests;
    refusals_ = 0;
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

void SwarmTrainer::Refused(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (++refusals_ < kMostRefusals || stopped_) return;
  own_fault_ = absl::FailedPreconditionError(
      absl::StrCat(kMostRefusals, " requests in a row were refused, the last with \"",
                   why.message(), "\"; this trainer must have the coordinator's data and version"));
  stopped_ = true;
}

void SwarmTrainer::Failed(const Place& place, int peer, int stage, const absl::Status& why,
                          bool lied, absl::Duration lost) {
  {
    absl::MutexLock lock(&mutex_);
    if (!IsNow(place)) return;
    ++traffic_.retries;
    traffic_.longest_lost_s = std::max(traffic_.longest_lost_s, absl::ToDoubleSeconds(lost));
    const bool other = absl::IsDeadlineExceeded(why) || absl::IsResourceExhausted(why);
    if (!other && routers_[stage].Has(peer)) {
      routers_[stage].Remove(peer);
      banned_.insert(peer);
    }
  }
  // Busy, of another step, or asked for what does not fit: not its fault.
  if (absl::IsResourceExhausted(why) || absl::IsFailedPrecondition(why) ||
      (!lied && absl::IsInvalidArgument(why))) {
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
  link_.Call(options_.coordinator, request, kReport, &reply).IgnoreError();
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
  PIPELAB_RETURN_IF_ERROR(link_.Call(options_.coordinator, request, kReport, &reply));
  absl::MutexLock lock(&mutex_);
  if (!IsNow(place)) return absl::OkStatus();
  MicroBatch& of = micro_batches_[place.Of(pass.micro_batch())];
  of.counted[pass.stage()] = reply.counted().peer();
  of.missing.erase(pass.stage());
  return absl::OkStatus();
}

}  // namespace pipelab
