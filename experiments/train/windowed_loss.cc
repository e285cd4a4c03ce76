#include "experiments/train/windowed_loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/types/span.h"
#include "models/data/token_fields.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// -log softmax(logits)[target].
double Nats(absl::Span<const float> logits, int32_t target) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float z : logits) sum += std::exp(static_cast<double>(z) - most);
  return std::log(sum) + most - static_cast<double>(logits[target]);
}

}  // namespace

absl::StatusOr<double> WindowedLoss(SerialTrainer* trained, const TextWindows& windows,
                                    int64_t chunk) {
  const auto width = static_cast<size_t>(windows.Field(kTargets).limit);
  const int64_t context = windows.Field(kTargets).size();
  double sum = 0;
  for (int64_t first = 0; first < windows.samples(); first += chunk) {
    const int64_t samples = std::min(chunk, windows.samples() - first);
    std::vector<float> logits;
    PIPELAB_RETURN_IF_ERROR(
        trained->Evaluate(windows, /*step=*/0, first, samples, &logits).status());
    for (int64_t i = 0; i < samples; ++i) {
      for (int64_t row = windows.first_row(); row < context; ++row) {
        const absl::Span<const float> of_row(&logits[(i * context + row) * width], width);
        sum += Nats(of_row, windows.tokens()[windows.Place(first + i, row)]);
      }
    }
  }
  return sum / static_cast<double>(windows.end_place() - windows.first_place());
}

}  // namespace pipelab
