#include "pipelines/swarm/routing.h"

#include <algorithm>

#include "glog/logging.h"

namespace pipelab {
namespace {

constexpr double kNewest = 0.1;  // the authors' code

}  // namespace

void PeerRouter::Add(int peer, double speed) {
  CHECK(!Has(peer)) << peer;
  CHECK_GT(speed, 0);
  Peer added;
  added.peer = peer;
  added.told = speed;
  added.tie = rng_.Bits(draws_++);
  const auto least = std::min_element(peers_.begin(), peers_.end(),
                                      [](const Peer& a, const Peer& b) { return a.load < b.load; });
  if (least != peers_.end()) added.load = least->load;
  peers_.push_back(added);
}

void PeerRouter::Remove(int peer) { peers_.erase(peers_.begin() + IndexOf(peer)); }

bool PeerRouter::Has(int peer) const {
  return std::any_of(peers_.begin(), peers_.end(), [&](const Peer& p) { return p.peer == peer; });
}

absl::optional<int> PeerRouter::Route(double work) {
  if (peers_.empty()) return absl::nullopt;
  Peer& next = *std::min_element(peers_.begin(), peers_.end(), [](const Peer& a, const Peer& b) {
    return a.load != b.load ? a.load < b.load : a.tie < b.tie;
  });
  next.load += work / next.speed();
  next.tie = rng_.Bits(draws_++);
  return next.peer;
}

void PeerRouter::Measured(int peer, double work, double seconds) {
  CHECK_GT(seconds, 0);
  Peer& p = peers_[IndexOf(peer)];
  p.mean += kNewest * (work / seconds - p.mean);
  p.weight += kNewest * (1 - p.weight);  // takes the bias of the first ones out
}

std::ptrdiff_t PeerRouter::IndexOf(int peer) const {
  const auto found =
      std::find_if(peers_.begin(), peers_.end(), [&](const Peer& p) { return p.peer == peer; });
  CHECK(found != peers_.end()) << peer;
  return found - peers_.begin();
}

}  // namespace pipelab
