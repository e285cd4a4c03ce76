#include <algorithm>
#include <map>
#include <set>

#include "pipelines/cluster/link_loads.h"
#include "pipelines/cluster/rank_network.h"

namespace pipelab {
namespace {

// C(n - held, k) / C(n, k): that none of k different ones of n is among those held.
double Misses(int64_t n, int64_t held, int64_t k) {
  double share = 1;
  for (int64_t i = 0; i < k; ++i) {
    share *= static_cast<double>(std::max<int64_t>(0, n - held - i)) / static_cast<double>(n - i);
  }
  return share;
}

double Choose(int64_t n, int64_t k) {
  double ways = 1;
  for (int64_t i = 0; i < k; ++i) ways *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  return k > n ? 0 : ways;
}

// How many of the ranks are in a unit of the level, on average; 1 below the innermost.
double RanksIn(const ClusterSpec& cluster, const std::vector<int64_t>& ranks, int level) {
  std::set<int64_t> units;
  const int64_t size = level < 0 ? 1 : cluster.devices_in(level);
  for (const int64_t rank : ranks) units.insert(rank / size);
  return static_cast<double>(ranks.size()) / static_cast<double>(units.size());
}

// What a level carries of tokens that go to each unit once, for each byte that it carries of rows
// by themselves. Those carry (s - below) / E of all rows, for s and `below` ranks in a unit of the
// level and of the level below. Tokens reach E / below units of the level below, of which the one
// that lies as the sender in its own needs no transfer.
double ShareOfLevel(const RoutedRows& rows, double ranks, double in_unit, double below) {
  const auto held = static_cast<double>(rows.experts) * below / ranks;
  const double reached = ranks / below * rows.Reaches(static_cast<int64_t>(held));
  return reached * ranks / (in_unit * static_cast<double>(rows.chosen));
}

RingLoads LoadsOfTokens(const ClusterSpec& cluster, const RingCrossing& group,
                        const RoutedRows& rows) {
  RingLoads loads = LoadsOfExchange(cluster, group);
  const auto ranks = static_cast<double>(group.ranks.size());
  std::map<int, double> shares;  // [level]
  for (auto& [key, load] : loads.loads) {
    const auto [share, added] = shares.try_emplace(key.level);
    if (added) {
      share->second = ShareOfLevel(rows, ranks, RanksIn(cluster, group.ranks, key.level),
                                   RanksIn(cluster, group.ranks, key.level - 1));
    }
    load *= share->second;
  }
  loads.step_latency = Nanoseconds(0);
  for (const auto& [level, share] : shares) {
    loads.step_latency += cluster.levels[level].connection.latency.value;
    const auto& through = cluster.levels[level].through;
    if (through.has_value()) loads.step_latency += through->connection.latency.value;
  }
  return loads;
}

}  // namespace

double RoutedRows::Reaches(int64_t held) const {
  if (most_nodes == 0 || most_nodes >= nodes) return 1 - Misses(experts, held, chosen);
  // Experts of a token's groups; those of one group, and how many groups the held ones are in.
  const int64_t open = experts / nodes * most_nodes, of_group = experts / nodes;
  const int64_t in = std::max<int64_t>(1, held / of_group), part = std::min(held, of_group);
  double misses = 0;
  for (int64_t j = 0; j <= std::min(in, most_nodes); ++j) {
    const double likely = Choose(in, j) * Choose(nodes - in, most_nodes - j);
    misses += likely / Choose(nodes, most_nodes) * Misses(open, j * part, chosen);
  }
  return 1 - misses;
}

PathCost ExchangePath(const ClusterSpec& cluster, const std::vector<int64_t>& ranks, int64_t groups,
                      const absl::optional<RoutedRows>& rows) {
  if (ranks.size() <= 1) return {};
  const RingCrossing group = {ranks, groups};
  const RingLoads loads =
      rows.has_value() ? LoadsOfTokens(cluster, group, *rows) : LoadsOfExchange(cluster, group);
  return {loads.step_latency, BandwidthUnder(cluster, loads.loads)};
}

}  // namespace pipelab
