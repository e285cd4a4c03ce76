#include "pipelines/swarm/rebalance.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace pipelab {
namespace {

double LoadOf(const StageLoad& stage) {
  const double speed = stage.speed();
  return speed > 0 ? stage.queue / speed : std::numeric_limits<double>::infinity();
}

// The peer whose move leaves the slower of the two stages fastest, where both then do more than
// `to` does now.
absl::optional<PeerMove> BestMove(const std::vector<StageLoad>& stages, int from, int to) {
  const double before = stages[to].throughput();
  double best = before;
  absl::optional<PeerMove> move;
  for (const PeerSpeed& p : stages[from].peers) {
    if (!p.settled) continue;
    const double left = (stages[from].speed() - p.speed) / stages[from].work;
    const double after = std::min(left, before + p.speed / stages[to].work);
    if (after <= best) continue;
    best = after;
    move = PeerMove{p.peer, from, to};
  }
  return move;
}

}  // namespace

double StageLoad::speed() const {
  return std::accumulate(peers.begin(), peers.end(), 0.0,
                         [](double sum, const PeerSpeed& p) { return sum + p.speed; });
}

absl::optional<PeerMove> Rebalance(const std::vector<StageLoad>& stages) {
  std::vector<double> loads;
  for (const StageLoad& stage : stages) loads.push_back(LoadOf(stage));
  std::vector<int> order(stages.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return loads[a] < loads[b]; });
  for (const int from : order) {
    if (from == order.back()) break;
    const absl::optional<PeerMove> move = BestMove(stages, from, order.back());
    if (move.has_value()) return move;
  }
  return absl::nullopt;
}

int StageToJoin(const std::vector<StageLoad>& stages) {
  const auto least = std::min_element(
      stages.begin(), stages.end(),
      [](const StageLoad& a, const StageLoad& b) { return a.throughput() < b.throughput(); });
  return static_cast<int>(least - stages.begin());
}

double BestThroughput(std::vector<double> speeds, const std::vector<double>& work) {
  std::sort(speeds.begin(), speeds.end(), std::greater<>());
  std::vector<double> throughputs(work.size());
  for (const double speed : speeds) {
    const auto least = std::min_element(throughputs.begin(), throughputs.end());
    *least += speed / work[least - throughputs.begin()];
  }
  return *std::min_element(throughputs.begin(), throughputs.end());
}

}  // namespace pipelab
