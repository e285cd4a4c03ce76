#include "models/mining/pair_classifier.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

namespace pipelab {
namespace {

constexpr int kWeights = PairSigns::kCount + 1;  // the constant first
constexpr int kSteps = 10;

using Row = std::array<double, kWeights>;

Row RowOf(const PairSigns& signs) {
  Row row;
  row[0] = 1;
  std::copy(signs.values.begin(), signs.values.end(), row.begin() + 1);
  return row;
}

double LogOdds(const std::vector<double>& weights, const PairSigns& signs) {
  const Row row = RowOf(signs);
  double sum = 0;
  for (int a = 0; a < kWeights; ++a) sum += weights[a] * row[a];
  return sum;
}

// Solves for a positive definite matrix, by elimination.
Row Solve(std::array<Row, kWeights> matrix, Row right) {
  for (int a = 0; a < kWeights; ++a) {
    for (int r = a + 1; r < kWeights; ++r) {
      const double times = matrix[r][a] / matrix[a][a];
      for (int c = a; c < kWeights; ++c) matrix[r][c] -= times * matrix[a][c];
      right[r] -= times * right[a];
    }
  }
  for (int a = kWeights - 1; a >= 0; --a) {
    for (int c = a + 1; c < kWeights; ++c) right[a] -= matrix[a][c] * right[c];
    right[a] /= matrix[a][a];
  }
  return right;
}

// With mean 0 and deviation 1 over all rows; a sign that never changes is 0.
void Standardise(std::vector<PairSigns>* rows) {
  const auto count = static_cast<double>(std::max<size_t>(1, rows->size()));
  for (int a = 0; a < PairSigns::kCount; ++a) {
    double sum = 0, squares = 0;
    for (const PairSigns& row : *rows) sum += row.values[a];
    const double mean = sum / count;
    for (const PairSigns& row : *rows) squares += std::pow(row.values[a] - mean, 2);
    const double deviation = std::sqrt(squares / count);
    for (PairSigns& row : *rows) {
      row.values[a] = deviation < 1e-12 ? 0 : (row.values[a] - mean) / deviation;
    }
  }
}

}  // namespace

std::vector<double> FitLogistic(const std::vector<PairSigns>& rows,
                                const std::vector<bool>& right) {
  std::vector<double> weights(kWeights, 0);
  for (int step = 0; step < kSteps; ++step) {
    std::array<Row, kWeights> curvature = {};
    Row slope = {};
    for (int a = 1; a < kWeights; ++a) {
      curvature[a][a] = 1;
      slope[a] = -weights[a];
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const Row row = RowOf(rows[i]);
      const double p = 1 / (1 + std::exp(-LogOdds(weights, rows[i])));
      for (int a = 0; a < kWeights; ++a) {
        slope[a] += ((right[i] ? 1 : 0) - p) * row[a];
        for (int b = 0; b < kWeights; ++b) curvature[a][b] += p * (1 - p) * row[a] * row[b];
      }
    }
    const Row change = Solve(curvature, slope);
    for (int a = 0; a < kWeights; ++a) weights[a] += change[a];
  }
  return weights;
}

Neighbours ClassifyPairs(const PairScorer& scorer, const Neighbours& near,
                         const std::vector<MinedPair>& right) {
  if (right.empty()) return near;
  const std::vector<std::pair<int32_t, int32_t>> places = CandidatePairs(near, near.of_x.k());
  std::vector<PairSigns> signs = scorer.Signs(places);
  Standardise(&signs);
  std::vector<int32_t> y_of_x(near.of_x.rows(), -1);
  std::vector<bool> has_y(near.of_y.rows(), false);
  for (const MinedPair& p : right) {
    y_of_x[p.x] = p.y;
    has_y[p.y] = true;
  }
  std::vector<PairSigns> rows;
  std::vector<bool> is_right;
  for (size_t p = 0; p < places.size(); ++p) {
    const auto [x, y] = places[p];
    if (y_of_x[x] < 0 && !has_y[y]) continue;
    rows.push_back(signs[p]);
    is_right.push_back(y_of_x[x] == y);
  }
  const std::vector<double> weights = FitLogistic(rows, is_right);
  Neighbours scored(near.of_x.rows(), near.of_y.rows(), near.of_x.k());
  for (size_t p = 0; p < places.size(); ++p) {
    scored.Offer(places[p].first, places[p].second, static_cast<float>(LogOdds(weights, signs[p])));
  }
  return scored;
}

}  // namespace pipelab
