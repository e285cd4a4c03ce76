#include "pipelines/swarm/swarm.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/swarm/rebalance.h"
#include "pipelines/swarm/swarm_engine.h"
#include "pipelines/swarm/swarm_state.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMostInFlight = 100'000;
constexpr double kLongest = 1e13;  // ns, of a request: sums of kMostInFlight fit

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

SwarmEngine::SwarmEngine(const SwarmOptions& options, const PeerTrace& trace)
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

SwarmFigures SwarmEngine::Run() {
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

void SwarmEngine::At(Nanoseconds time, SwarmEventKind kind, int index, uint32_t life) {
  if (time < options_.duration) events_.push({time, kind, order_++, index, life});
}

void SwarmEngine::Handle(const SwarmEvent& event) {
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
void SwarmEngine::Observe() {
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
void SwarmEngine::Refresh() {
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

SwarmFigures SwarmEngine::Finish() {
  Observe();
  const double seconds = ToSeconds(options_.duration - options_.warm_up);
  figures_.steps = ledger_.averaged();
  figures_.throughput = static_cast<double>(figures_.micro_batches) / seconds;
  figures_.best /= seconds;
  figures_.slowest /= seconds;
  if (peer_seconds_ > 0) figures_.device_use = busy_seconds_ / peer_seconds_;
  return figures_;
}

absl::StatusOr<SwarmFigures> SimulateSwarm(const SwarmOptions& options, const PeerTrace& trace) {
  PIPELAB_RETURN_IF_ERROR(Check(options, trace));
  return SwarmEngine(options, trace).Run();
}

}  // namespace pipelab
