// How good predictions are, beside data: area under the ROC curve, coefficient of determination,
// accuracy, and a mean with its standard error.
//
//   AreaUnderRoc({0.1f, 0.9f, 0.4f}, {0, 1, 0})      // 1: every positive above every negative
//   RSquared({1.0f, 2.0f}, {1.5f, 1.5f})             // 0: no better than the mean
#ifndef PIPELAB_MODELS_DATA_METRICS_H_
#define PIPELAB_MODELS_DATA_METRICS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace pipelab {

// The chance that a random positive scores above a random negative, half of it when they are equal:
// exact, by ranks (Mann and Whitney 1947). Labels are 0 or 1; 0.5 when one kind is missing. No
// score is NaN (CHECKed).
double AreaUnderRoc(absl::Span<const float> scores, absl::Span<const uint8_t> labels);

// 1 - (sum of squared errors) / (sum of squares about the targets' mean). Below 0 when worse than
// the mean; 0 when the targets do not vary.
double RSquared(absl::Span<const float> targets, absl::Span<const float> predictions);

// The place of the largest score, the first of equal ones. At least one, none NaN (CHECKed).
int64_t ArgMax(absl::Span<const double> scores);
int64_t ArgMax(absl::Span<const float> scores);

// log(softmax(logits)), in double.
std::vector<double> LogSoftmax(absl::Span<const float> logits);

// The share of the labels whose class has the largest of its row of `scores` [label, class].
double Accuracy(absl::Span<const float> scores, absl::Span<const uint8_t> labels);

// The mean of independent values. The error is the mean's standard error, deviation / sqrt(n); 0
// for fewer than two values.
struct MeanWithError {
  double mean = 0, error = 0;
};
MeanWithError MeanOf(absl::Span<const double> values);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_METRICS_H_
