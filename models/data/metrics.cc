#include "models/data/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "glog/logging.h"

namespace pipelab {

double AreaUnderRoc(absl::Span<const float> scores, absl::Span<const uint8_t> labels) {
  CHECK_EQ(scores.size(), labels.size());
  for (const float s : scores) CHECK(!std::isnan(s));
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  // Twice the pairs won, ties once: whole numbers, so the result is exact.
  uint64_t twice_won = 0, negatives = 0, positives = 0;
  for (size_t i = 0; i < order.size();) {
    uint64_t tied_negatives = 0, tied_positives = 0;
    const float score = scores[order[i]];
    for (; i < order.size() && scores[order[i]] == score; ++i) {
      CHECK_LE(labels[order[i]], 1);
      ++(labels[order[i]] == 1 ? tied_positives : tied_negatives);
    }
    twice_won += tied_positives * (2 * negatives + tied_negatives);
    negatives += tied_negatives;
    positives += tied_positives;
  }
  if (negatives == 0 || positives == 0) return 0.5;
  return static_cast<double>(twice_won) /
         (2 * static_cast<double>(negatives) * static_cast<double>(positives));
}

double RSquared(absl::Span<const float> targets, absl::Span<const float> predictions) {
  CHECK_EQ(targets.size(), predictions.size());
  double mean = 0;
  for (const float t : targets) mean += t;
  mean /= static_cast<double>(std::max<size_t>(targets.size(), 1));
  double errors = 0, squares = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    const double error = static_cast<double>(targets[i]) - predictions[i];
    errors += error * error;
    squares += (targets[i] - mean) * (targets[i] - mean);
  }
  return squares == 0 ? 0 : 1 - errors / squares;
}

namespace {

template <typename T>
int64_t PlaceOfLargest(absl::Span<const T> scores) {
  CHECK(!scores.empty());
  for (const T s : scores) CHECK(!std::isnan(s));
  return std::max_element(scores.begin(), scores.end()) - scores.begin();
}

}  // namespace

int64_t ArgMax(absl::Span<const double> scores) { return PlaceOfLargest(scores); }
int64_t ArgMax(absl::Span<const float> scores) { return PlaceOfLargest(scores); }

std::vector<double> LogSoftmax(absl::Span<const float> logits) {
  const double largest = logits[ArgMax(logits)];
  double sum = 0;
  for (const float z : logits) sum += std::exp(z - largest);
  std::vector<double> out;
  for (const float z : logits) out.push_back(z - largest - std::log(sum));
  return out;
}

double Accuracy(absl::Span<const float> scores, absl::Span<const uint8_t> labels) {
  CHECK(!labels.empty());
  CHECK_EQ(scores.size() % labels.size(), 0u);
  const size_t classes = scores.size() / labels.size();
  size_t right = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    right += ArgMax(scores.subspan(i * classes, classes)) == labels[i];
  }
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

MeanWithError MeanOf(absl::Span<const double> values) {
  const double n = static_cast<double>(values.size());
  MeanWithError out;
  if (values.empty()) return out;
  out.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() < 2) return out;
  double squares = 0;
  for (const double v : values) squares += (v - out.mean) * (v - out.mean);
  out.error = std::sqrt(squares / (n - 1) / n);
  return out;
}

}  // namespace pipelab
