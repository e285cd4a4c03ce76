// Which peer of a stage gets the next request: interleaved weighted round robin, as SWARM's
// trainers do it (Ryabinin et al., arXiv 2301.11913, and its public code).
//
//   PeerRouter router(/*seed=*/1);                      // of one stage
//   router.Add(/*peer=*/7, /*speed=*/1);
//   const absl::optional<int> peer = router.Route(/*work=*/3);
//   router.Measured(*peer, /*work=*/3, /*seconds=*/2.9);  // its result came
//   router.Remove(*peer);                                // or it did not: gone until added again
//
// Each peer has a load: the time that its requests so far should have taken it. The next request
// goes to the least loaded one, and adds work / speed to its load. Of equals, one is drawn. So in
// any stretch of requests peers have shares in proportion to their speeds, and no peer's requests
// come in a row. A peer that is added starts at the least load, so it is tried soon.
//
// Work is in seconds of a peer of speed 1. A speed is the mean of work / seconds of the results so
// far, in which each newer one counts for a tenth; before the first result, what Add was told.
//
// It knows no clock and no network, so a simulator and a runtime can use the same one. One thread
// at a time. A peer that is not there is a broken invariant: CHECKed.
#ifndef PIPELAB_PIPELINES_SWARM_ROUTING_H_
#define PIPELAB_PIPELINES_SWARM_ROUTING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "tools/base/rng.h"

namespace pipelab {

class PeerRouter {
 public:
  explicit PeerRouter(uint64_t seed) : rng_(seed, "elastic/route") {}

  void Add(int peer, double speed);  // above 0
  void Remove(int peer);
  bool Has(int peer) const;
  bool empty() const { return peers_.empty(); }

  // None while there are no peers.
  absl::optional<int> Route(double work);
  void Measured(int peer, double work, double seconds);
  double Speed(int peer) const { return peers_[IndexOf(peer)].speed(); }

 private:
  struct Peer {
    int peer = 0;
    double load = 0;
    uint32_t tie = 0;  // drawn anew with each request
    double told = 1;
    double mean = 0, weight = 0;  // of measured speeds; what the weights sum to

    double speed() const { return weight == 0 ? told : mean / weight; }
  };
  std::ptrdiff_t IndexOf(int peer) const;

  CounterRng rng_;
  uint64_t draws_ = 0;
  std::vector<Peer> peers_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_ROUTING_H_
