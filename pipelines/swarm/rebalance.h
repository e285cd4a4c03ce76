// Which peers serve which stage: SWARM's rebalancing (Ryabinin et al., arXiv 2301.11913), and the
// best that any placement can do, to compare with.
//
//   std::vector<StageLoad> loads = ...;               // of the last T seconds
//   if (const absl::optional<PeerMove> m = Rebalance(loads)) { ... }     // every T seconds
//   const int stage = StageToJoin(loads);             // of a peer that is new
//   BestThroughput({1, 1, 2, 4}, /*work=*/{1, 1});    // micro-batches a second: 4
//
// A stage's load is its queue, the requests that wait or are served in the mean of the last T
// seconds, over the sum of its peers' speeds. Every T seconds one peer of a stage with little load
// moves to the stage with the most. We add one condition, because a move costs a download: with
// this peer less the stage still does more than the stage that gets it does now. Otherwise the
// next least loaded stage is asked, and at last nobody moves.
//
// Speeds are multiples of one reference peer; `work` is what a micro-batch takes that peer,
// seconds. Pure functions, for a simulator and a runtime alike.
#ifndef PIPELAB_PIPELINES_SWARM_REBALANCE_H_
#define PIPELAB_PIPELINES_SWARM_REBALANCE_H_

#include <vector>

#include "absl/types/optional.h"

namespace pipelab {

struct PeerSpeed {
  int peer = 0;
  double speed = 1;
  bool settled = true;  // not on its way: it may move
};

struct StageLoad {
  double queue = 0;  // requests that wait or are served, in the mean
  double work = 1;
  std::vector<PeerSpeed> peers;  // those that serve it, and those on their way to it

  double speed() const;
  double throughput() const { return speed() / work; }
};

struct PeerMove {
  int peer = 0, from = 0, to = 0;
};

absl::optional<PeerMove> Rebalance(const std::vector<StageLoad>& stages);

// Where throughput is least. Not by queues, which say nothing yet of peers on their way: many that
// join at once would all go to one stage. At least one stage.
int StageToJoin(const std::vector<StageLoad>& stages);

// The largest throughput of the slowest stage over all placements of peers, micro-batches a second.
// Exact where peers are equal. Otherwise the greedy placement's (the fastest peer first, to where
// throughput is least), which is at most the best.
double BestThroughput(std::vector<double> speeds, const std::vector<double>& work);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_REBALANCE_H_
