#include "pipelines/elastic/swarm.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "pipelines/elastic/rebalance.h"
#include "pipelines/elastic/swarm_state.h"
#include "pipelines/elastic/updates.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMostInFlight = 100'000;
constexpr double kLongest = 1e13;  // ns, of a request: sums of kMostInFlight fit

class Swarm {
 public:
  Swarm(const SwarmOptions& options, const PeerTrace& trace)
      : options_(options),
        trace_(trace),
        peers_(trace.num_peers()),
        ledger_(options.step, static_cast<int>(options.stages.size()), options.update) {
    for (size_t s = 0; s < options.stages.size(); ++s) {
      stages_.emplace_back(CounterRng(options.seed, "elastic/stage").Bits(s));
    }
    for (size_t p = 0; p < peers_.size(); ++p) {
      noise_.emplace_back(options.seed ^ StableHash("elastic/drift"), p);
    }
  }

  SwarmFigures Run() {
    for (size_t i = 0; i < trace_.stays.size(); ++i) {
      At(trace_.stays[i].join, SwarmEventKind::kJoin, static_cast<int>(i));
    }
    if (options_.rebalance_every > Nanoseconds(0)) {
      At(options_.rebalance_every, SwarmEventKind::kRebalance, 0);
    }
    At(Nanoseconds(0), SwarmEventKind::kAsk, -1);  // behind the peers of time 0
    while (!events_.empty()) {
      const SwarmEvent event = events_.top();
      events_.pop();
      now_ = event.time;
      Handle(event);
    }
    now_ = options_.duration;
    return Finish();
  }

 private:
  void At(Nanoseconds time, SwarmEventKind kind, int index, uint32_t life = 0) {
    if (time < options_.duration) events_.push({time, kind, order_++, index, life});
  }

  void Handle(const SwarmEvent& event) {
    switch (event.kind) {
      case SwarmEventKind::kJoin:
        return Join(trace_.stays[event.index]);
      case SwarmEventKind::kLeave:
        return Leave(event.index);
      case SwarmEventKind::kServe:
        if (peers_[event.index].life == event.life) Serve(event.index);
        return;
      case SwarmEventKind::kResult:
        if (tasks_[event.index].life == event.life) TakeResult(event.index);
        return;
      case SwarmEventKind::kAsk:
        return event.index < 0 ? BeginMicroBatches() : Ask(event.index);
      case SwarmEventKind::kRebalance:
        return RebalanceNow();
      case SwarmEventKind::kAveraged:
        ledger_.EndAverage();
        TryAverage();
        return BeginMicroBatches();
    }
  }

  // What the swarm can do changes now: what it could until now is added up.
  void Observe() {
    const Nanoseconds from = std::max(observed_, options_.warm_up);
    if (now_ > from) {
      const double seconds = ToSeconds(now_ - from);
      figures_.best += best_ * seconds;
      figures_.slowest += slowest_ * seconds;
      peer_seconds_ += static_cast<double>(present_) * seconds;
    }
    observed_ = now_;
    stale_ = true;
  }

  // After all changes of one time.
  void Refresh() {
    if (!stale_) return;
    stale_ = false;
    std::vector<double> speeds, work;
    slowest_ = -1;
    for (size_t s = 0; s < stages_.size(); ++s) {
      double speed = 0;
      for (const int p : stages_[s].members) {
        speeds.push_back(peers_[p].rated);
        if (peers_[p].serving) speed += peers_[p].rated;
      }
      work.push_back(ToSeconds(options_.stages[s].work()));
      if (slowest_ < 0 || speed / work[s] < slowest_) slowest_ = speed / work[s];
    }
    present_ = static_cast<int64_t>(speeds.size());
    best_ = BestThroughput(std::move(speeds), work);
  }

  // --- Peers.

  std::vector<StageLoad> Loads() const {
    std::vector<StageLoad> loads;
    for (size_t s = 0; s < stages_.size(); ++s) {
      StageLoad& load = loads.emplace_back();
      load.queue = stages_[s].queue_seconds;  // over one time for all stages
      load.work = ToSeconds(options_.stages[s].work());
      for (const int p : stages_[s].members) {
        const bool serving = peers_[p].serving;
        load.peers.push_back({p, serving ? stages_[s].router.Speed(p) : peers_[p].known, serving});
      }
    }
    return loads;
  }

  void Join(const PeerStay& stay) {
    Observe();
    SwarmPeer& peer = peers_[stay.peer];
    const bool first = now_ == Nanoseconds(0);
    const bool own = first || options_.joining == JoinRule::kOwnStage;
    peer.stage = own ? stay.peer % static_cast<int>(stages_.size()) : StageToJoin(Loads());
    peer.rated = peer.known = stay.speed;
    stages_[peer.stage].members.push_back(stay.peer);
    At(stay.leave, SwarmEventKind::kLeave, stay.peer);
    if (first) {
      Serve(stay.peer);
    } else {
      Download(stay.peer, now_);
    }
    Refresh();
  }

  void Download(int p, Nanoseconds begin) {
    const Nanoseconds takes =
        options_.link.latency + options_.link.TransferTime(options_.stages[peers_[p].stage].state);
    At(begin + takes, SwarmEventKind::kServe, p, peers_[p].life);
  }

  void Serve(int p) {
    Observe();
    SwarmPeer& peer = peers_[p];
    SwarmStageState& stage = stages_[peer.stage];
    peer.serving = true;
    peer.in_free = peer.compute_free = peer.out_free = now_;
    stage.router.Add(p, peer.known);
    for (const int task : std::exchange(stage.waiting, {})) Ask(task);
    Refresh();
  }

  void LeaveStage(int p) {
    SwarmStageState& stage = stages_[peers_[p].stage];
    if (peers_[p].serving) stage.router.Remove(p);
    peers_[p].serving = false;
    stage.members.erase(std::find(stage.members.begin(), stage.members.end(), p));
  }

  void Leave(int p) {
    Observe();
    SwarmPeer& peer = peers_[p];
    LeaveStage(p);
    ++peer.life;
    for (const int task : peer.tasks) AskAgain(task);
    figures_.lost_requests += static_cast<int64_t>(peer.tasks.size());
    peer.tasks.clear();
    for (const int64_t micro_batch : std::exchange(peer.gradients, {})) {
      ledger_.Lose(peer.stage, micro_batch);
      ++figures_.lost_gradients;
      const int task = NewTask();
      tasks_[task].micro_batch = micro_batch;
      tasks_[task].stage = peer.stage;
      tasks_[task].backward = tasks_[task].again = true;
      stages_[peer.stage].Queue(now_, 1);
      AskAgain(task);
    }
    peer.stage = -1;
    Refresh();
  }

  void RebalanceNow() {
    for (SwarmStageState& stage : stages_) stage.Queue(now_, 0);
    const absl::optional<PeerMove> move = Rebalance(Loads());
    for (SwarmStageState& stage : stages_) stage.queue_seconds = 0;
    At(now_ + options_.rebalance_every, SwarmEventKind::kRebalance, 0);
    if (!move.has_value()) return;
    Observe();
    ++figures_.moves;
    SwarmPeer& peer = peers_[move->peer];
    peer.known = stages_[move->from].router.Speed(move->peer);
    LeaveStage(move->peer);
    Nanoseconds drained = now_;
    if (!peer.tasks.empty()) drained = std::max(now_, peer.out_free + options_.link.latency);
    if (!peer.gradients.empty()) {
      drained +=
          options_.link.latency + options_.link.TransferTime(options_.stages[move->from].gradients);
      peer.gradients.clear();
    }
    peer.stage = move->to;
    stages_[move->to].members.push_back(move->peer);
    Download(move->peer, drained);
    Refresh();
  }

  // --- Requests.

  int NewTask() {
    if (free_.empty()) {
      tasks_.emplace_back();
      return static_cast<int>(tasks_.size()) - 1;
    }
    const int task = free_.back();
    free_.pop_back();
    const uint32_t life = tasks_[task].life;
    tasks_[task] = SwarmTask();
    tasks_[task].life = life + 1;
    return task;
  }

  void AskAgain(int task) {
    ++tasks_[task].life;
    At(now_ + options_.notice, SwarmEventKind::kAsk, task);
  }

  void Request(int task) {
    stages_[tasks_[task].stage].Queue(now_, 1);
    Ask(task);
  }

  void Ask(int index) {
    SwarmTask& task = tasks_[index];
    SwarmStageState& stage = stages_[task.stage];
    const SwarmStage& costs = options_.stages[task.stage];
    const SwarmPass& pass = task.backward ? costs.backward : costs.forward;
    const absl::optional<int> p = stage.router.Route(ToSeconds(pass.compute));
    if (!p.has_value()) return stage.waiting.push_back(index);
    const SwarmPeer::Service service =
        peers_[*p].Send(now_, pass, options_.link, options_.drift, noise_[*p]);
    task.peer = *p;
    task.took = service.took;
    peers_[*p].tasks.push_back(index);
    At(service.result, SwarmEventKind::kResult, index, ++task.life);
  }

  void TakeResult(int index) {
    const SwarmTask task = tasks_[index];
    SwarmPeer& peer = peers_[task.peer];
    SwarmStageState& stage = stages_[task.stage];
    CHECK_EQ(peer.tasks.front(), index);
    peer.tasks.pop_front();
    stage.Queue(now_, -1);
    if (now_ > options_.warm_up) busy_seconds_ += ToSeconds(task.took);
    const bool stays = peer.serving && peer.stage == task.stage;  // it may be about to move
    if (stays) {
      const SwarmStage& costs = options_.stages[task.stage];
      const Nanoseconds work = task.backward ? costs.backward.compute : costs.forward.compute;
      stage.router.Measured(task.peer, ToSeconds(work), ToSeconds(task.took));
    }
    if (task.backward && options_.step > 0) {
      if (stays) peer.gradients.push_back(task.micro_batch);
      ledger_.Count(task.stage, task.micro_batch);
    }
    Advance(index);
    TryAverage();
  }

  // To the micro-batch's next request.
  void Advance(int index) {
    SwarmTask& task = tasks_[index];
    const int last = static_cast<int>(stages_.size()) - 1;
    const bool ends = task.again || (task.backward && task.stage == 0);
    if (!ends) {
      if (task.backward) {
        --task.stage;
      } else if (task.stage < last) {
        ++task.stage;
      } else {
        task.backward = true;
      }
      return Request(index);
    }
    free_.push_back(index);
    if (task.again) return;
    --in_flight_;
    if (now_ > options_.warm_up) ++figures_.micro_batches;
    BeginMicroBatches();
  }

  void BeginMicroBatches() {
    while (in_flight_ < options_.in_flight && ledger_.MayBegin()) {
      const int task = NewTask();
      tasks_[task].micro_batch = ledger_.Begin();
      ++in_flight_;
      Request(task);
    }
  }

  // --- Optimizer steps, one after the other.

  void TryAverage() {
    if (!ledger_.MayAverage()) return;
    const int64_t step = ledger_.BeginAverage();
    for (SwarmPeer& peer : peers_) {
      std::vector<int64_t>& kept = peer.gradients;
      kept.erase(std::remove_if(kept.begin(), kept.end(),
                                [&](int64_t m) { return ledger_.IsOf(m, step); }),
                 kept.end());
    }
    Nanoseconds longest;
    for (size_t s = 0; s < stages_.size(); ++s) longest = std::max(longest, AverageTime(s));
    At(now_ + longest, SwarmEventKind::kAveraged, 0);
  }

  // A ring's (pipelines/cost/collectives.h).
  Nanoseconds AverageTime(size_t s) const {
    const auto n = static_cast<int64_t>(stages_[s].members.size());
    if (n < 2) return Nanoseconds(0);
    const double sent = 2.0 * static_cast<double>(n - 1) / static_cast<double>(n) *
                        static_cast<double>(options_.stages[s].gradients.value());
    return 2 * (n - 1) * options_.link.latency + TransferTime(sent, options_.link.bandwidth);
  }

  SwarmFigures Finish() {
    Observe();
    const double seconds = ToSeconds(options_.duration - options_.warm_up);
    figures_.steps = ledger_.averaged();
    figures_.throughput = static_cast<double>(figures_.micro_batches) / seconds;
    figures_.best /= seconds;
    figures_.slowest /= seconds;
    if (peer_seconds_ > 0) figures_.device_use = busy_seconds_ / peer_seconds_;
    return figures_;
  }

  const SwarmOptions& options_;
  const PeerTrace& trace_;
  std::vector<SwarmPeer> peers_;
  std::vector<CounterRng> noise_;  // [peer]
  std::vector<SwarmStageState> stages_;
  std::vector<SwarmTask> tasks_;
  std::vector<int> free_;  // tasks
  std::priority_queue<SwarmEvent> events_;
  uint64_t order_ = 0;
  Nanoseconds now_;
  int in_flight_ = 0;
  StepLedger ledger_;
  Nanoseconds observed_;
  bool stale_ = true;
  double best_ = 0, slowest_ = 0, peer_seconds_ = 0, busy_seconds_ = 0;
  int64_t present_ = 0;
  SwarmFigures figures_;
};

absl::Status Check(const SwarmOptions& options, const PeerTrace& trace) {
  const auto wrong = [](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat(why...));
  };
  if (options.stages.empty()) return wrong("a swarm needs at least one stage");
  if (options.in_flight < 1 || options.in_flight > kMostInFlight) {
    return wrong("in flight: ", options.in_flight, " micro-batches; must be 1 to ", kMostInFlight);
  }
  if (options.warm_up >= options.duration || options.warm_up < Nanoseconds(0)) {
    return wrong("the warm-up of ", ToString(options.warm_up), " must end before the duration of ",
                 ToString(options.duration));
  }
  double slowest = 1e300;
  for (const PeerStay& stay : trace.stays) slowest = std::min(slowest, stay.speed);
  for (size_t s = 0; s < options.stages.size(); ++s) {
    for (const SwarmPass& pass : {options.stages[s].forward, options.stages[s].backward}) {
      if (pass.compute <= Nanoseconds(0)) return wrong("stage ", s, ": a pass takes no time");
      if (static_cast<double>(pass.compute.value()) > kLongest * slowest) {
        return wrong("stage ", s, ": a pass takes the slowest peer, of speed ", slowest,
                     ", more than ", kLongest * 1e-9, " s");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SwarmFigures> SimulateSwarm(const SwarmOptions& options, const PeerTrace& trace) {
  PIPELAB_RETURN_IF_ERROR(Check(options, trace));
  return Swarm(options, trace).Run();
}

}  // namespace pipelab
