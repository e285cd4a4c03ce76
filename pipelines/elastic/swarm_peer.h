// A peer of the simulation: when it can serve what, and what it has.
//
//   SwarmPeer peer;                                     // rated 1
//   const SwarmPeer::Service s = peer.Send(now, pass, link, drift, noise);
//   s.result;                                            // when the trainer has the result
#ifndef PIPELAB_PIPELINES_ELASTIC_SWARM_PEER_H_
#define PIPELAB_PIPELINES_ELASTIC_SWARM_PEER_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <vector>

#include "pipelines/cluster/network.h"
#include "pipelines/elastic/peer_trace.h"
#include "pipelines/elastic/swarm.h"
#include "tools/base/rng.h"
#include "tools/base/units.h"

namespace pipelab {

struct SwarmPeer {
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

#endif  // PIPELAB_PIPELINES_ELASTIC_SWARM_PEER_H_
