#include "experiments/train/predict.h"

#include <algorithm>

#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<std::vector<float>> Predict(SerialTrainer* trained, const BatchSource& data,
                                           int64_t samples, int64_t chunk) {
  std::vector<float> predictions;
  for (int64_t first = 0; first < samples; first += chunk) {
    PIPELAB_RETURN_IF_ERROR(
        trained->Evaluate(data, /*step=*/0, first, std::min(chunk, samples - first), &predictions)
            .status());
  }
  return predictions;
}

absl::StatusOr<double> MeanLoss(SerialTrainer* trained, const BatchSource& data, int64_t samples,
                                int64_t chunk) {
  double sum = 0;
  for (int64_t first = 0; first < samples; first += chunk) {
    const int64_t n = std::min(chunk, samples - first);
    PIPELAB_ASSIGN_OR_RETURN(const double loss, trained->Evaluate(data, /*step=*/0, first, n));
    sum += loss * static_cast<double>(n);
  }
  return sum / static_cast<double>(samples);
}

}  // namespace pipelab
