// What a simulated swarm (swarm.h) consists of: events, requests, peers, stages.
//
//   const SimulatedPeer::Service s = peer.Send(now, pass, link, drift, noise);
//   s.result;                                          // when the trainer has the result
#ifndef PIPELAB_PIPELINES_SWARM_SWARM_STATE_H_
#define PIPELAB_PIPELINES_SWARM_SWARM_STATE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <tuple>
#include <vector>

#include "pipelines/cluster/network.h"
#include "pipelines/swarm/routing.h"
#include "pipelines/swarm/swarm.h"
#include "tools/base/rng.h"
#include "tools/base/units.h"

namespace pipelab {

// In the order in which those of one time happen: a place is left before it is taken again.
enum class SwarmEventKind : uint8_t { kLeave, kJoin, kServe, kResult, kAsk, kRebalance, kAveraged };

struct SwarmEvent {
  Nanoseconds time;
  SwarmEventKind kind = SwarmEventKind::kJoin;
  uint64_t order = 0;  // of events of one kind at one time
  int index = 0;       // of a stay, a peer or a task
  uint32_t life = 0;

  bool operator<(const SwarmEvent& o) const {  // the first one is the largest
    return std::tie(o.time, o.kind, o.order) < std::tie(time, kind, order);
  }
};

struct SwarmTask {
  int64_t micro_batch = 0;
  int stage = 0;
  bool backward = false;
  bool again = false;  // a backward whose gradient was lost: nothing follows it
  int peer = -1;
  uint32_t life = 0;  // how often it was asked: results of earlier times are none
  Nanoseconds took;
};

struct SwarmStageState {
  explicit SwarmStageState(uint64_t seed) : router(seed) {}

  PeerRouter router;
  std::vector<int> members;  // those on their way, too
  std::vector<int> waiting;  // tasks that no peer serves
  int queued = 0;
  double queue_seconds = 0;
  Nanoseconds since;

  void Queue(Nanoseconds now, int change) {
    queue_seconds += queued * ToSeconds(now - since);
    since = now;
    queued += change;
  }
};

struct SimulatedPeer {
  struct Service {
    Nanoseconds took, result;
  };

  int stage = -1;  // -1: it is not there
  bool serving = false;
  uint32_t life = 0;  // tells its stays apart
  double rated = 1;   // by the trace
  double known = 1;   // what the swarm thinks of its speed
  Nanoseconds in_free, compute_free, out_free;
  std::deque<int> tasks;           // results come in this order
  std::vector<int64_t> gradients;  // micro-batches, since the last optimizer step
  int64_t drift_index = -1;
  double drifted = 0;

  // Request and result take the links, and the pass the device, in the order of Send.
  Service Send(Nanoseconds now, const SwarmPass& pass, const PathCost& link,
               const SpeedDrift& drift, const CounterRng& noise) {
    in_free = std::max(now, in_free) + link.TransferTime(pass.request);
    const Nanoseconds begin = std::max(in_free + link.latency, compute_free);
    const double speed = rated * DriftAt(begin, drift, noise);
    const Nanoseconds took(
        std::max<int64_t>(1, std::llround(static_cast<double>(pass.compute.value()) / speed)));
    compute_free = begin + took;
    out_free = std::max(compute_free, out_free) + link.TransferTime(pass.result);
    return {took, out_free + link.latency};
  }

 private:
  // `time` never falls.
  double DriftAt(Nanoseconds time, const SpeedDrift& drift, const CounterRng& noise) {
    if (drift.every == Nanoseconds(0)) return 1;
    for (const int64_t now = time.value() / drift.every.value(); drift_index < now;) {
      const double drawn = drift.deviation * noise.Normal(static_cast<uint64_t>(++drift_index));
      drifted = drift_index == 0
                    ? drawn
                    : drift.kept * drifted + std::sqrt(1 - drift.kept * drift.kept) * drawn;
    }
    return std::exp(drifted);
  }
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_SWARM_STATE_H_
