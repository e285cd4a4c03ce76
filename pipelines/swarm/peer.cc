#include "pipelines/swarm/peer.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::Duration kBeat = absl::Milliseconds(200), kRetry = absl::Milliseconds(100);
constexpr absl::Duration kLongestRetry = absl::Seconds(5);
constexpr absl::Duration kCall = absl::Seconds(10);  // before the job's limit is known

}  // namespace

absl::Status SwarmPeer::Ask(const std::string& to, swarm::Request* request, swarm::Reply* reply) {
  absl::Duration limit = kCall;
  {
    absl::MutexLock lock(&books_);
    if (job_.wait_ms() > 0) limit = WaitLimit(job_);
  }
  request->set_epoch(epoch_);
  return link_.Call(to, *request, limit, reply);
}

absl::Status SwarmPeer::Run() {
  absl::Time last = absl::Now();
  absl::Duration pause = kRetry;
  while (!stopped_ && !finished_) {
    const absl::Status joined = JoinOnce();
    if (joined.ok()) {
      last = absl::Now();
      pause = kRetry;
      continue;
    }
    const bool may_pass = absl::IsUnavailable(joined) || absl::IsDeadlineExceeded(joined) ||
                          absl::IsFailedPrecondition(joined) || absl::IsAborted(joined);
    if (!may_pass || absl::Now() - last > options_.patience) return joined;
    // Longer and longer: a neighbour that is gone is told once more until somebody misses it.
    for (const absl::Time end = absl::Now() + pause; absl::Now() < end && !stopped_;) {
      absl::SleepFor(kRetry);
    }
    pause = std::min(2 * pause, kLongestRetry);
  }
  return absl::OkStatus();
}

absl::Status SwarmPeer::JoinOnce() {
  swarm::Request request;
  swarm::Reply reply;
  request.mutable_join()->set_address(address_);
  request.mutable_join()->set_speed(options_.speed);
  request.mutable_join()->set_stage(options_.stage);
  PIPELAB_RETURN_IF_ERROR(Ask(options_.coordinator, &request, &reply));
  const swarm::Joined& joined = reply.joined();
  PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<PeerStage> stage,
                           PeerStage::Create(joined.job(), joined.stage()));
  {
    absl::MutexLock computing(&computing_);
    absl::MutexLock lock(&books_);
    epoch_ = reply.epoch();
    ++joins_;
    peer_ = joined.peer();
    job_ = joined.job();
    parameters_ = stage->parameters();
    gradients_.clear();
    part_ = whole_ = Average();
    stage_ = std::move(stage);
  }
  PIPELAB_RETURN_IF_ERROR(BecomeReady(joined));
  return BeatUntilDropped();
}

absl::Status SwarmPeer::FetchState(const std::string& from, absl::Duration limit) {
  if (from.empty()) return absl::OkStatus();  // the seed's
  swarm::Request request;
  swarm::Reply reply;
  {
    absl::MutexLock lock(&computing_);
    request.mutable_get_state()->set_stage(stage_->stage());
  }
  request.set_epoch(epoch_);
  PIPELAB_RETURN_IF_ERROR(link_.Call(from, request, limit, &reply));
  absl::MutexLock computing(&computing_);
  absl::MutexLock lock(&books_);
  gradients_.clear();
  return stage_->SetState(reply.state());
}

absl::Status SwarmPeer::BecomeReady(const swarm::Joined& joined) {
  std::string from = joined.neighbour();
  while (!stopped_) {
    PIPELAB_RETURN_IF_ERROR(FetchState(from, WaitLimit(joined.job())));
    swarm::Request request;
    swarm::Reply reply;
    request.mutable_ready()->set_peer(joined.peer());
    {
      absl::MutexLock lock(&computing_);
      request.mutable_ready()->set_step(stage_->step());
    }
    PIPELAB_RETURN_IF_ERROR(Ask(options_.coordinator, &request, &reply));
    if (!reply.ready().again()) return absl::OkStatus();
    from = reply.ready().neighbour();
  }
  return absl::OkStatus();
}

absl::Status SwarmPeer::BeatUntilDropped() {
  absl::Time answered = absl::Now();
  while (!stopped_) {
    swarm::Request request;
    swarm::Reply reply;
    {
      absl::MutexLock lock(&books_);
      request.mutable_beat()->set_peer(peer_);
    }
    const int64_t samples = queue_samples_.exchange(0), sum = queue_sum_.exchange(0);
    request.mutable_beat()->set_queue(
        samples == 0 ? waiting_.load() : static_cast<double>(sum) / static_cast<double>(samples));
    const absl::Status asked = Ask(options_.coordinator, &request, &reply);
    if (asked.ok()) {
      answered = absl::Now();
      finished_ = reply.beat().stop();
      if (reply.beat().unknown() || finished_) return absl::OkStatus();
    } else if (absl::Now() - answered > options_.patience || absl::IsPermissionDenied(asked)) {
      return asked;
    }
    absl::SleepFor(kBeat);
  }
  return absl::OkStatus();
}

absl::Status SwarmPeer::Serve(const swarm::Request& request, absl::Time deadline,
                              swarm::Reply* reply) {
  const int64_t joined = joins_;
  reply->set_epoch(epoch_);
  if (request.has_health()) {
    reply->mutable_done();
    return absl::OkStatus();
  }
  if (request.epoch() != epoch_) {
    return absl::FailedPreconditionError(
        absl::StrCat("epoch ", request.epoch(), "; this peer has joined ", epoch_.load()));
  }
  switch (request.kind_case()) {
    case swarm::Request::kPass:
      return ServePass(joined, request.pass(), deadline, reply);
    case swarm::Request::kReduce:
      return request.reduce().gather()
                 ? ServeGather(joined, request.reduce(), reply->mutable_reduce())
                 : ServeReduce(joined, request.reduce(), reply->mutable_reduce());
    case swarm::Request::kGetSum:
      return ServeSum(joined, request.get_sum(), reply->mutable_sum());
    case swarm::Request::kCommit:
      reply->mutable_done();
      return ServeCommit(joined, request.commit());
    case swarm::Request::kGetState:
      return ServeState(joined, reply->mutable_state());
    default:
      return absl::InvalidArgumentError("not a request to a peer");
  }
}

absl::Status SwarmPeer::ServePass(int64_t joined, const swarm::Pass& pass, absl::Time deadline,
                                  swarm::Reply* reply) {
  const absl::Cleanup leave = [this] { --waiting_; };
  const int waiting = ++waiting_;
  queue_sum_ += waiting;
  ++queue_samples_;
  if (waiting > options_.most_waiting) {
    return absl::ResourceExhaustedError(absl::StrCat(waiting, " requests wait"));
  }
  absl::MutexLock computing(&computing_);
  const absl::Time begin = absl::Now();
  if (begin > deadline) return absl::DeadlineExceededError("nobody waits for it any more");
  PIPELAB_RETURN_IF_ERROR(CheckJoined(joined));
  std::vector<float> gradient;
  PIPELAB_RETURN_IF_ERROR(stage_->Run(pass, reply->mutable_pass(), &gradient));
  absl::SleepFor(options_.least_pass * (pass.backward() ? kBackwardWork : 1) -
                 (absl::Now() - begin));
  reply->mutable_pass()->set_seconds(absl::ToDoubleSeconds(absl::Now() - begin));
  if (!pass.backward()) return absl::OkStatus();
  absl::MutexLock lock(&books_);
  gradients_[{pass.step(), pass.micro_batch()}] =
      std::make_shared<const std::vector<float>>(std::move(gradient));
  return absl::OkStatus();
}

absl::Status SwarmPeer::ServeCommit(int64_t joined, const swarm::Commit& commit) {
  absl::MutexLock computing(&computing_);
  PIPELAB_RETURN_IF_ERROR(CheckJoined(joined));
  if (stage_ == nullptr) return absl::FailedPreconditionError("not joined");
  if (stage_->step() == commit.step() + 1) return absl::OkStatus();  // again
  absl::MutexLock lock(&books_);
  if (whole_.step != commit.step() || stage_->step() != commit.step()) {
    return absl::FailedPreconditionError(absl::StrCat("has no average of step ", commit.step()));
  }
  PIPELAB_RETURN_IF_ERROR(stage_->Step(whole_.values));
  gradients_.erase(gradients_.begin(), gradients_.lower_bound({commit.step() + 1, 0}));
  part_ = whole_ = Average();
  return absl::OkStatus();
}

absl::Status SwarmPeer::ServeState(int64_t joined, swarm::State* state) {
  absl::MutexLock computing(&computing_);
  PIPELAB_RETURN_IF_ERROR(CheckJoined(joined));
  if (stage_ == nullptr) return absl::FailedPreconditionError("not joined");
  PIPELAB_ASSIGN_OR_RETURN(*state, stage_->State());
  return absl::OkStatus();
}

}  // namespace pipelab
