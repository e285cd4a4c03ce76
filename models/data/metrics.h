// How good predictions are, beside data: area under the ROC curve, coefficient of determination.
//
//   AreaUnderRoc({0.1f, 0.9f, 0.4f}, {0, 1, 0})      // 1: every positive above every negative
//   RSquared({1.0f, 2.0f}, {1.5f, 1.5f})             // 0: no better than the mean
#ifndef PIPELAB_MODELS_DATA_METRICS_H_
#define PIPELAB_MODELS_DATA_METRICS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace pipelab {

// The chance that a random positive scores above a random negative, half of it when they are equal:
// exact, by ranks (Mann and Whitney 1947). Labels are 0 or 1; 0.5 when one kind is missing. No
// score is NaN (CHECKed).
double AreaUnderRoc(absl::Span<const float> scores, absl::Span<const uint8_t> labels);

// 1 - (sum of squared errors) / (sum of squares about the targets' mean). Below 0 when worse than
// the mean; 0 when the targets do not vary.
double RSquared(absl::Span<const float> targets, absl::Span<const float> predictions);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_METRICS_H_
