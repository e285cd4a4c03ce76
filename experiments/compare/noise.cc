#include "experiments/compare/noise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace pipelab {
namespace {

// Figures of the joint order: the sum of the ranks of `a` (equal values share theirs), and the
// ties' term sum of t^3 - t.
struct Ranks {
  double sum_a = 0, ties = 0;
};

Ranks RanksOf(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<std::pair<double, bool>> all;  // value, whether of a
  for (const double x : a) all.emplace_back(x, true);
  for (const double x : b) all.emplace_back(x, false);
  std::sort(all.begin(), all.end());
  Ranks ranks;
  for (size_t i = 0; i < all.size();) {
    size_t end = i;
    while (end < all.size() && all[end].first == all[i].first) ++end;
    const double rank = static_cast<double>(i + 1 + end) / 2, count = static_cast<double>(end - i);
    for (size_t k = i; k < end; ++k) ranks.sum_a += all[k].second ? rank : 0;
    ranks.ties += count * count * count - count;
    i = end;
  }
  return ranks;
}

// [u] Ways in which n values stand among m others with u pairs in order, over all ways.
std::vector<double> Distribution(size_t n, size_t m) {
  // ways[i][j]: of i values among j others; the last is one of the i, or one of the j.
  std::vector<std::vector<std::vector<double>>> ways(n + 1,
                                                     std::vector<std::vector<double>>(m + 1));
  for (size_t i = 0; i <= n; ++i) {
    for (size_t j = 0; j <= m; ++j) {
      std::vector<double>& w = ways[i][j];
      w.assign(i * j + 1, 0);
      if (i == 0 || j == 0) {
        w[0] = 1;
        continue;
      }
      for (size_t u = 0; u < ways[i - 1][j].size(); ++u) w[u + j] += ways[i - 1][j][u];
      for (size_t u = 0; u < ways[i][j - 1].size(); ++u) w[u] += ways[i][j - 1][u];
    }
  }
  double total = 0;
  for (const double w : ways[n][m]) total += w;
  for (double& w : ways[n][m]) w /= total;
  return ways[n][m];
}

double ExactP(size_t n, size_t m, double u) {
  const std::vector<double> share = Distribution(n, m);
  double below = 0, above = 0;
  for (size_t k = 0; k < share.size(); ++k) {
    if (static_cast<double>(k) <= u) below += share[k];
    if (static_cast<double>(k) >= u) above += share[k];
  }
  return std::min(1.0, 2 * std::min(below, above));
}

double NormalP(double n, double m, double u, double ties) {
  const double total = n + m;
  const double variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)));
  if (variance <= 0) return 1;  // all values are equal
  const double away = std::max(0.0, std::abs(u - n * m / 2) - 0.5);
  return std::erfc(away / std::sqrt(2 * variance));
}

double Quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

NoiseVerdict CompareSamples(const std::vector<double>& a, const std::vector<double>& b) {
  NoiseVerdict v;
  if (a.size() < kLeastSamples || b.size() < kLeastSamples) return v;
  v.enough = true;
  const Ranks ranks = RanksOf(a, b);
  const double n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
  const double u = ranks.sum_a - n * (n + 1) / 2;
  const bool exact = ranks.ties == 0 && a.size() <= kExactSamples && b.size() <= kExactSamples;
  v.p_value = exact ? ExactP(a.size(), b.size(), u) : NormalP(n, m, u, ranks.ties);
  v.same = v.p_value >= kNoiseLevel;
  return v;
}

Spread SpreadOf(std::vector<double> samples) {
  Spread s;
  s.count = static_cast<int>(samples.size());
  if (samples.empty()) return s;
  std::sort(samples.begin(), samples.end());
  s.median = Quantile(samples, 0.5);
  s.first_quartile = Quantile(samples, 0.25);
  s.third_quartile = Quantile(samples, 0.75);
  return s;
}

}  // namespace pipelab
