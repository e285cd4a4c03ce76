#include "experiments/predict/error_summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace pipelab {
namespace {

// Equal predictions tell no order.
bool InOrder(const TimedPrediction& a, const TimedPrediction& b) {
  return a.measured < b.measured ? a.predicted < b.predicted : a.predicted > b.predicted;
}

bool Differ(const TimedPrediction& a, const TimedPrediction& b) {
  const auto [less, more] = std::minmax(a.measured, b.measured);
  return more > 1.1 * less;
}

std::vector<double> RanksOf(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double mean = static_cast<double>(begin + end - 1) / 2;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = mean;
  }
  return ranks;
}

}  // namespace

ErrorSummary Summarise(const std::vector<TimedPrediction>& all) {
  ErrorSummary s;
  s.rows = static_cast<int64_t>(all.size());
  if (all.empty()) return s;
  std::vector<double> absolute;
  for (const TimedPrediction& p : all) {
    absolute.push_back(std::abs(p.error()));
    s.mean += absolute.back();
    s.bias += p.error();
  }
  std::sort(absolute.begin(), absolute.end());
  const size_t n = absolute.size();
  s.mean /= static_cast<double>(s.rows);
  s.bias /= static_cast<double>(s.rows);
  s.median = (absolute[(n - 1) / 2] + absolute[n / 2]) / 2;
  s.ninth_decile = absolute[(n * 9 + 9) / 10 - 1];
  s.largest = absolute.back();
  return s;
}

RankingSummary RankPairs(const std::vector<TimedPrediction>& all) {
  std::map<std::string, std::vector<const TimedPrediction*>> alike;
  for (const TimedPrediction& p : all) alike[p.alike].push_back(&p);
  RankingSummary s;
  for (const auto& [key, rows] : alike) {
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (!Differ(*rows[i], *rows[j])) continue;
        ++s.pairs;
        if (InOrder(*rows[i], *rows[j])) ++s.right;
        if (rows[i]->predicted == rows[j]->predicted) ++s.ties;
      }
    }
  }
  return s;
}

double RankCorrelation(const std::vector<TimedPrediction>& all) {
  if (all.size() < 3) return 0;
  std::vector<double> measured, predicted;
  for (const TimedPrediction& p : all) {
    measured.push_back(p.measured);
    predicted.push_back(p.predicted);
  }
  const std::vector<double> a = RanksOf(measured), b = RanksOf(predicted);
  const double mean = static_cast<double>(all.size() - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  return aa == 0 || bb == 0 ? 0 : ab / std::sqrt(aa * bb);
}

}  // namespace pipelab
