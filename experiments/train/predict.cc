#include "experiments/train/predict.h"

#include <algorithm>

#include "models/data/metrics.h"
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

absl::StatusOr<std::vector<double>> Accuracies(SerialTrainer* trained, const BatchSource& data,
                                               const std::vector<uint8_t>& labels) {
  std::vector<double> accuracies;
  const std::vector<LayerSpec>& layers = trained->graph().layers;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].output_shape.empty()) continue;
    trained->JudgeBy(static_cast<int>(i));
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<float> logits,
                             Predict(trained, data, static_cast<int64_t>(labels.size())));
    accuracies.push_back(Accuracy(logits, labels));
  }
  return accuracies;
}

}  // namespace pipelab
