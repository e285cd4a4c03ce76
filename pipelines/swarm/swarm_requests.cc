// How requests of a simulated swarm go round, and its optimizer steps.
#include <algorithm>
#include <vector>

#include "absl/types/optional.h"
#include "glog/logging.h"
#include "pipelines/swarm/swarm_engine.h"
#include "pipelines/swarm/swarm_state.h"
#include "tools/base/units.h"

namespace pipelab {

int SwarmEngine::NewTask() {
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

void SwarmEngine::AskAgain(int task) {
  ++tasks_[task].life;
  At(now_ + options_.notice, SwarmEventKind::kAsk, task);
}

void SwarmEngine::Request(int task) {
  stages_[tasks_[task].stage].Queue(now_, 1);
  Ask(task);
}

void SwarmEngine::Ask(int index) {
  SwarmTask& task = tasks_[index];
  SwarmStageState& stage = stages_[task.stage];
  const SwarmStage& costs = options_.stages[task.stage];
  const SwarmPass& pass = task.backward ? costs.backward : costs.forward;
  const absl::optional<int> p = stage.router.Route(ToSeconds(pass.compute));
  if (!p.has_value()) return stage.waiting.push_back(index);
  const SimulatedPeer::Service service =
      peers_[*p].Send(now_, pass, options_.link, options_.drift, noise_[*p]);
  task.peer = *p;
  task.took = service.took;
  peers_[*p].tasks.push_back(index);
  At(service.result, SwarmEventKind::kResult, index, ++task.life);
}

void SwarmEngine::TakeResult(int index) {
  const SwarmTask task = tasks_[index];
  SimulatedPeer& peer = peers_[task.peer];
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
void SwarmEngine::Advance(int index) {
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

void SwarmEngine::BeginMicroBatches() {
  while (in_flight_ < options_.in_flight && ledger_.MayBegin()) {
    const int task = NewTask();
    tasks_[task].micro_batch = ledger_.Begin();
    ++in_flight_;
    Request(task);
  }
}

void SwarmEngine::TryAverage() {
  if (!ledger_.MayAverage()) return;
  const int64_t step = ledger_.BeginAverage();
  for (SimulatedPeer& peer : peers_) {
    std::vector<int64_t>& kept = peer.gradients;
    kept.erase(
        std::remove_if(kept.begin(), kept.end(), [&](int64_t m) { return ledger_.IsOf(m, step); }),
        kept.end());
  }
  Nanoseconds longest;
  for (size_t s = 0; s < stages_.size(); ++s) longest = std::max(longest, AverageTime(s));
  At(now_ + longest, SwarmEventKind::kAveraged, 0);
}

// A ring's (pipelines/cost/collectives.h).
Nanoseconds SwarmEngine::AverageTime(size_t s) const {
  const auto n = static_cast<int64_t>(stages_[s].members.size());
  if (n < 2) return Nanoseconds(0);
  const double sent = 2.0 * static_cast<double>(n - 1) / static_cast<double>(n) *
                      static_cast<double>(options_.stages[s].gradients.value());
  return 2 * (n - 1) * options_.link.latency + TransferTime(sent, options_.link.bandwidth);
}

}  // namespace pipelab
