// The part of SwarmCoordinator that answers: who joins, what is missing, what has come.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "pipelines/swarm/coordinator.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMostStalls = 3;     // of a peer, without a gradient between them
constexpr int kMostCalls = 100;    // of a peer, in a second
constexpr size_t kMostJoins = 20;  // of a place, in a minute
constexpr size_t kMostMembers = 10'000;
constexpr int kFetching = 3;  // wait limits for a state
constexpr absl::Duration kIdlePoll =
    absl::Milliseconds(500);  // of a trainer that has nothing to do
constexpr absl::Duration kProbe = absl::Seconds(1);
constexpr size_t kMostWhy = 500;  // of a reason that others have written

// For a place between quotes.
std::string Unquoted(absl::string_view text) {
  return absl::StrReplaceAll(text.substr(0, kMostWhy), {{"\"", "'"}});
}

// One word for a log and for whoever calls: printable, without blanks and quotes.
bool IsAddress(absl::string_view text) {
  return !text.empty() && text.size() <= 300 && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c <= '~' && c != '"' && c != '\\';
  });
}

}  // namespace

absl::Status SwarmCoordinator::Serve(const swarm::Request& request, absl::Time deadline,
                                     swarm::Reply* reply) {
  bool known = false;
  {
    absl::MutexLock lock(&mutex_);
    known = request.epoch() == epoch_;
    reply->set_epoch(epoch_);
  }
  switch (request.kind_case()) {
    case swarm::Request::kJoin:
      return ServeJoin(request.join(), reply);
    case swarm::Request::kBeat:
      return ServeBeat(request.beat(), known, reply->mutable_beat());
    case swarm::Request::kGetTasks:
      return ServeTasks(request.get_tasks(), deadline, reply);
    case swarm::Request::kHealth:
      reply->mutable_done();
      return absl::OkStatus();
    default:
      break;
  }
  if (!known) return absl::FailedPreconditionError("of another epoch: join again");
  switch (request.kind_case()) {
    case swarm::Request::kReady:
      return ServeReady(request.ready(), deadline, reply);
    case swarm::Request::kReport:
      return ServeReport(request.report(), reply->mutable_counted());
    case swarm::Request::kGetState:
      return ServeState(request.get_state().stage(), reply->mutable_state());
    default:
      return absl::InvalidArgumentError("not a request to a coordinator");
  }
}

bool SwarmCoordinator::IsReady(const Member& m) const { return m.ready == step_; }

void SwarmCoordinator::Remove(int peer) {
  members_.erase(peer);
  const int micro_batches = options_.job.micro_batches();
  for (auto& [step, books] : books_) {
    for (int stage = 0; stage < options_.job.stages(); ++stage) {
      for (int m = 0; m < micro_batches; ++m) {
        if (books.counted[stage][m] != peer) continue;
        books.counted[stage][m] = -1;
        ledger_->Lose(stage, (step - ledger_begin_) * micro_batches + m);
        Log("lose step=", step, " stage=", stage, " micro_batch=", m, " peer=", peer);
      }
    }
  }
  Changed();
}

void SwarmCoordinator::Drop(int peer, absl::string_view why) {
  const auto it = members_.find(peer);
  if (it == members_.end()) return;
  Log("drop peer=", peer, " stage=", it->second.stage, " address=", it->second.address, " why=\"",
      Unquoted(why), "\"");
  Remove(peer);
}

void SwarmCoordinator::DropSilent() {
  const absl::Time now = absl::Now();
  std::vector<int> silent;
  for (const auto& [peer, m] : members_) {
    // One that fetches its state does not beat.
    const absl::Duration limit = WaitLimit(options_.job) * (m.ready < 0 ? kFetching : 1);
    if (now - m.seen > limit) silent.push_back(peer);
  }
  for (int peer : silent) Drop(peer, "no sign of life for longer than the limit");
}

bool SwarmCoordinator::Floods(Member* m) {
  const absl::Time now = absl::Now();
  if (now - m->second > absl::Seconds(1)) {
    m->second = now;
    m->calls = 0;
  }
  return ++m->calls > kMostCalls;
}

std::vector<StageLoad> SwarmCoordinator::Loads() const {
  std::vector<StageLoad> loads(options_.job.stages());
  // Stages are balanced by flops.
  for (int s = 0; s < options_.job.stages(); ++s) {
    loads[s].work = StageWork(s, options_.job.stages());
  }
  for (const auto& [peer, m] : members_) {
    loads[m.stage].queue += m.queue;
    loads[m.stage].peers.push_back({peer, m.told_speed, IsReady(m)});
  }
  return loads;
}

// Between steps, when it has no gradients.
void SwarmCoordinator::MoveOne() {
  const absl::optional<PeerMove> move = Rebalance(Loads());
  if (!move.has_value()) return;
  moving_[members_.at(move->peer).address] = move->to;
  Log("move peer=", move->peer, " stage=", move->from, " to=", move->to);
  Remove(move->peer);
}

// Who joins goes where least is done, but peers that are gone may not be missed yet. So a stage may
// end up without any while no more come; then it gets one of another stage's.
void SwarmCoordinator::FillEmptyStage() {
  const absl::Time now = absl::Now();
  if (now - std::max(progress_, rebalanced_) <= WaitLimit(options_.job)) return;
  const std::vector<StageLoad> loads = Loads();
  if (std::none_of(loads.begin(), loads.end(),
                   [](const StageLoad& stage) { return stage.peers.empty(); })) {
    return;
  }
  rebalanced_ = now;
  MoveOne();
}

std::string SwarmCoordinator::NeighbourOf(int stage) const {
  std::vector<std::string> neighbours;
  for (const auto& [peer, m] : members_) {
    if (m.stage == stage && IsReady(m)) neighbours.push_back(m.address);
  }
  // Another one for each that comes.
  if (!neighbours.empty()) return neighbours[next_peer_ % neighbours.size()];
  return saved_.tensors.empty() ? std::string() : address_;
}

absl::Status SwarmCoordinator::ServeJoin(const swarm::Join& join, swarm::Reply* reply) {
  absl::MutexLock lock(&mutex_);
  if (join.stage() < -1 || join.stage() >= options_.job.stages()) {
    return absl::InvalidArgumentError(
        absl::StrCat("stage ", join.stage(), " of ", options_.job.stages()));
  }
  if (!(join.speed() > 0 && join.speed() <= 1e6) || !IsAddress(join.address())) {
    return absl::InvalidArgumentError("a speed or an address out of range");
  }
  const absl::Time now = absl::Now();
  std::vector<absl::Time>& joins = joins_[join.address()];
  joins.erase(std::remove_if(joins.begin(), joins.end(),
                             [&](absl::Time t) { return now - t > absl::Minutes(1); }),
              joins.end());
  if (joins.size() >= kMostJoins || members_.size() >= kMostMembers) {
    const std::string why = absl::StrCat("floods: joins ", kMostJoins, " times in a minute");
    for (auto it = members_.begin(); it != members_.end(); ++it) {
      if (it->second.address != join.address()) continue;
      Drop(it->first, why);
      break;
    }
    return absl::PermissionDeniedError(absl::StrCat(join.address(), " ", why));
  }
  if (StageIsLost()) return absl::UnavailableError("going back to the checkpoint");
  joins.push_back(now);
  if (joins_.size() > kMostMembers) joins_.clear();
  for (auto it = members_.begin(); it != members_.end();) {
    const int peer = (it++)->first;
    if (members_.at(peer).address == join.address()) Drop(peer, "joins anew");
  }
  Member m;
  m.address = join.address();
  m.told_speed = join.speed();
  m.seen = m.second = now;
  const auto moving = moving_.find(join.address());
  m.stage = moving != moving_.end() ? moving->second
            : join.stage() >= 0     ? join.stage()
                                    : StageToJoin(Loads());
  if (moving != moving_.end()) moving_.erase(moving);
  swarm::Joined* joined = reply->mutable_joined();
  reply->set_epoch(epoch_);
  joined->set_peer(next_peer_++);
  joined->set_stage(m.stage);
  *joined->mutable_job() = options_.job;
  joined->set_neighbour(NeighbourOf(m.stage));
  Log("join peer=", joined->peer(), " stage=", m.stage, " address=", m.address);
  members_[joined->peer()] = std::move(m);
  return absl::OkStatus();
}

// While gradients are averaged, who is there is fixed.
absl::Status SwarmCoordinator::ServeReady(const swarm::Ready& ready, absl::Time deadline,
                                          swarm::Reply* reply) {
  absl::MutexLock lock(&mutex_);
  const auto may = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !averaging_; };
  if (!mutex_.AwaitWithDeadline(absl::Condition(&may), deadline)) {
    return absl::DeadlineExceededError("gradients are averaged");
  }
  const auto it = members_.find(ready.peer());
  if (it == members_.end()) return absl::FailedPreconditionError("dropped: join again");
  it->second.seen = absl::Now();
  if (ready.step() != step_) {
    reply->mutable_ready()->set_again(true);
    reply->mutable_ready()->set_neighbour(NeighbourOf(it->second.stage));
    return absl::OkStatus();
  }
  reply->mutable_ready();
  it->second.ready = step_;
  Log("ready peer=", ready.peer(), " stage=", it->second.stage, " step=", step_);
  Changed();
  return absl::OkStatus();
}

absl::Status SwarmCoordinator::ServeBeat(const swarm::Beat& beat, bool known_epoch,
                                         swarm::BeatDone* done) {
  absl::MutexLock lock(&mutex_);
  done->set_stop(finished_);
  const auto it = members_.find(beat.peer());
  done->set_unknown(!known_epoch || it == members_.end());
  if (done->unknown()) return absl::OkStatus();
  if (finished_) {
    members_.erase(it);
    return absl::OkStatus();
  }
  it->second.seen = absl::Now();
  it->second.queue = beat.queue();
  if (Floods(&it->second)) {
    Drop(beat.peer(), absl::StrCat("floods: more than ", kMostCalls, " calls a second"));
    done->set_unknown(true);
  }
  return absl::OkStatus();
}

// Micro-batches are dealt to the trainers that are there, in turn.
void SwarmCoordinator::FillTasks(int trainer, swarm::Tasks* tasks) {
  const absl::Time now = absl::Now();
  trainers_[trainer] = now;
  for (auto it = trainers_.begin(); it != trainers_.end();) {
    it = now - it->second > WaitLimit(options_.job) ? trainers_.erase(it) : std::next(it);
  }
  const auto place = std::distance(trainers_.begin(), trainers_.find(trainer));
  tasks->set_number(number_);
  tasks->set_step(step_);
  tasks->set_stop(finished_);
  *tasks->mutable_job() = options_.job;
  const auto trainers = static_cast<int64_t>(trainers_.size());
  for (const auto& [step, books] : books_) {
    if (averaging_ && step == step_) continue;
    for (int m = 0; m < options_.job.micro_batches(); ++m) {
      if (m % trainers != place) continue;
      swarm::Task task;
      task.set_step(step);
      task.set_micro_batch(m);
      for (int stage = 0; stage < options_.job.stages(); ++stage) {
        if (books.counted[stage][m] < 0) task.add_stages(stage);
      }
      if (task.stages_size() > 0) *tasks->add_tasks() = std::move(task);
    }
  }
  for (const auto& [peer, m] : members_) {
    if (!IsReady(m)) continue;
    swarm::PeerPlace* place_of = tasks->add_peers();
    place_of->set_peer(peer);
    place_of->set_stage(m.stage);
    place_of->set_address(m.address);
    place_of->set_speed(m.told_speed);
  }
}

absl::Status SwarmCoordinator::CheckTrainer(const swarm::GetTasks& get) {
  const SwarmSettings data(get.data().begin(), get.data().end());
  std::string other = FirstDifference(data, options_.data, "the swarm");
  if (other.empty() && get.training_size() > 0) {
    const SwarmSettings training(get.training().begin(), get.training().end());
    other = FirstDifference(training, SettingsOf(options_.job, layout_), "the swarm");
  }
  if (other.empty()) return absl::OkStatus();
  const std::string why = absl::StrCat("trainer ", get.trainer(), ": ", other);
  trainers_.erase(get.trainer());
  if (refused_.size() < kMostMembers && refused_.insert(get.trainer()).second) {
    Log("refuse why=\"", Unquoted(why), "\"");
  }
  return absl::PermissionDeniedError(why);
}

absl::Status SwarmCoordinator::ServeTasks(const swarm::GetTasks& get, absl::Time deadline,
                                          swarm::Reply* reply) {
  absl::MutexLock lock(&mutex_);
  PIPELAB_RETURN_IF_ERROR(CheckTrainer(get));
  const auto changed = [&]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return number_ != get.seen(); };
  mutex_.AwaitWithDeadline(absl::Condition(&changed), std::min(deadline, absl::Now() + kIdlePoll));
  reply->set_epoch(epoch_);
  FillTasks(get.trainer(), reply->mutable_tasks());
  if (finished_) trainers_.erase(get.trainer());
  return absl::OkStatus();
}

absl::Status SwarmCoordinator::ServeReport(const swarm::Report& report, swarm::Counted* done) {
  if (!report.fault().empty()) {
    Suspect(report.peer(), report.fault(), report.lied());
    return absl::OkStatus();
  }
  absl::MutexLock lock(&mutex_);
  const auto it = members_.find(report.peer());
  const int stage = report.stage(), m = report.micro_batch();
  const auto books = books_.find(report.step());
  if (books == books_.end() || it == members_.end() || it->second.stage != stage || m < 0 ||
      m >= options_.job.micro_batches() || (averaging_ && report.step() == step_)) {
    return absl::AbortedError("the step is over, or the peer gone");
  }
  it->second.stalls = 0;
  int& counted = books->second.counted[stage][m];
  const bool first = counted < 0;
  if (first) counted = report.peer();
  done->set_peer(counted);
  if (!first) return absl::OkStatus();
  ledger_->Count(stage, (report.step() - ledger_begin_) * options_.job.micro_batches() + m);
  if (stage + 1 == options_.job.stages()) books->second.losses[m] = report.loss();
  Log("count step=", report.step(), " stage=", stage, " micro_batch=", m, " peer=", report.peer());
  progress_ = absl::Now();
  return absl::OkStatus();
}

void SwarmCoordinator::Suspect(int peer, const std::string& fault, bool lied) {
  std::string address;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = members_.find(peer);
    if (it == members_.end()) return;
    if (lied) return Drop(peer, fault);
    address = it->second.address;
  }
  swarm::Request request;
  swarm::Reply reply;
  request.mutable_health();
  const absl::Status asked =
      link_.Call(address, request, std::min(kProbe, WaitLimit(options_.job)), &reply);
  absl::MutexLock lock(&mutex_);
  const auto it = members_.find(peer);
  if (it == members_.end()) return;
  if (!asked.ok()) return Drop(peer, fault);
  if (++it->second.stalls >= kMostStalls) {
    Drop(peer, absl::StrCat("stalls: ", kMostStalls, " requests in a row: ", fault));
  }
}

}  // namespace pipelab
