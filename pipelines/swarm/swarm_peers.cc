// How peers of a simulated swarm join, leave and move.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "pipelines/swarm/rebalance.h"
#include "pipelines/swarm/swarm_engine.h"
#include "pipelines/swarm/swarm_state.h"
#include "tools/base/units.h"

namespace pipelab {

std::vector<StageLoad> SwarmEngine::Loads() const {
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

void SwarmEngine::Join(const PeerStay& stay) {
  Observe();
  SimulatedPeer& peer = peers_[stay.peer];
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

void SwarmEngine::Download(int p, Nanoseconds begin) {
  const Nanoseconds takes =
      options_.link.latency + options_.link.TransferTime(options_.stages[peers_[p].stage].state);
  At(begin + takes, SwarmEventKind::kServe, p, peers_[p].life);
}

void SwarmEngine::Serve(int p) {
  Observe();
  SimulatedPeer& peer = peers_[p];
  SwarmStageState& stage = stages_[peer.stage];
  peer.serving = true;
  peer.in_free = peer.compute_free = peer.out_free = now_;
  stage.router.Add(p, peer.known);
  for (const int task : std::exchange(stage.waiting, {})) Ask(task);
  Refresh();
}

void SwarmEngine::LeaveStage(int p) {
  SwarmStageState& stage = stages_[peers_[p].stage];
  if (peers_[p].serving) stage.router.Remove(p);
  peers_[p].serving = false;
  stage.members.erase(std::find(stage.members.begin(), stage.members.end(), p));
}

void SwarmEngine::Leave(int p) {
  Observe();
  SimulatedPeer& peer = peers_[p];
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

void SwarmEngine::RebalanceNow() {
  for (SwarmStageState& stage : stages_) stage.Queue(now_, 0);
  const absl::optional<PeerMove> move = Rebalance(Loads());
  for (SwarmStageState& stage : stages_) stage.queue_seconds = 0;
  At(now_ + options_.rebalance_every, SwarmEventKind::kRebalance, 0);
  if (!move.has_value()) return;
  Observe();
  ++figures_.moves;
  SimulatedPeer& peer = peers_[move->peer];
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

}  // namespace pipelab
