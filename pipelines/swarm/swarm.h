// A swarm in simulation: stages that are served by peers which come and go (SWARM, Ryabinin et al.,
// arXiv 2301.11913), under the policies of routing.h, rebalance.h and updates.h.
//
//   SwarmOptions options;
//   options.stages.assign(32, stage);                   // swarm_costs.h
//   options.in_flight = 1600;  options.duration = Milliseconds(32 * 3'600'000ll);
//   options.joining = JoinRule::kNeediest;  options.rebalance_every = Milliseconds(300'000);
//   PIPELAB_ASSIGN_OR_RETURN(SwarmFigures f, SimulateSwarm(options, trace));
//   f.throughput / f.best;                              // the share of the optimum
//
// Trainers have `in_flight` micro-batches under way, and begin another where one ends. A
// micro-batch is a chain of requests: forward at each stage, then backward at each stage from the
// last. A request carries all that it needs, so any peer of its stage serves it; a backward runs
// the forward again. Requests go from the trainer to the peer and their results back.
//
// A peer has a link each way, which its messages take one after the other, and computes one request
// at a time in the order in which they were sent; all three run at once. Trainers' links are no
// limit. A peer that leaves loses the requests that it has, also in the middle of a message;
// trainers notice after `notice` and ask another peer. It also loses the gradients that it has
// summed since the last optimizer step. Exactly these backwards are asked for again.
//
// A peer that joins, or moves to another stage, first downloads the stage's state over its own
// link. One that moves serves what it has before, and sends on the gradients that it has. Averages
// of gradients are a ring in each stage, beside all messages.
//
// The same figures for a seed on every machine with the same `exp` and `log`. Nanoseconds.
#ifndef PIPELAB_PIPELINES_SWARM_SWARM_H_
#define PIPELAB_PIPELINES_SWARM_SWARM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/cluster/network.h"
#include "pipelines/swarm/peer_trace.h"
#include "pipelines/swarm/updates.h"
#include "tools/base/units.h"

namespace pipelab {

struct SwarmPass {
  Nanoseconds compute;    // of a peer of speed 1; above 0
  Bytes request, result;  // to the peer, and back
};

struct SwarmStage {
  SwarmPass forward, backward;
  Bytes state;      // what a peer that joins downloads
  Bytes gradients;  // what peers average

  Nanoseconds work() const { return forward.compute + backward.compute; }
};

enum class JoinRule : uint8_t {
  kOwnStage,  // peer p serves stage p % stages whenever it comes: its command line says so
  kNeediest,  // StageToJoin
};

// The logarithm of a peer's speed is its own, and a deviation that is drawn anew `every` so long:
// `kept` times the one before, and noise, with `deviation` in the long run.
struct SpeedDrift {
  Nanoseconds every = Nanoseconds(0);  // 0: none
  double deviation = 0, kept = 0.9;
};

struct SwarmOptions {
  std::vector<SwarmStage> stages;
  PathCost link;  // of each peer, each way
  Nanoseconds notice = Milliseconds(1000);
  int in_flight = 1;                             // micro-batches, 1 to 100000
  Nanoseconds duration, warm_up;                 // figures are of what is after warm_up
  JoinRule joining = JoinRule::kOwnStage;        // at time 0 always kOwnStage
  Nanoseconds rebalance_every = Nanoseconds(0);  // 0: never
  SpeedDrift drift;
  int64_t step = 0;  // micro-batches of an optimizer step; 0: no steps, nothing is averaged
  UpdateRule update;
  uint64_t seed = 1;
};

struct SwarmFigures {
  int64_t micro_batches = 0;  // that ended
  double throughput = 0;      // micro-batches a second
  double best = 0;            // BestThroughput of the peers that are there, in the mean over time
  double slowest = 0;         // what the peers of the slowest stage can do, in the mean over time
  double device_use = 0;      // time in requests whose results came, of all peers' time
  // From the beginning on:
  int64_t steps = 0;  // with one gradient of each micro-batch at each stage: CHECKed
  int64_t lost_requests = 0, lost_gradients = 0;  // which were asked for again
  int64_t moves = 0;
};

// InvalidArgument: stages that take no time, sizes out of range, a peer for which a request takes
// more than 10000 s.
absl::StatusOr<SwarmFigures> SimulateSwarm(const SwarmOptions& options, const PeerTrace& trace);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_SWARM_H_
