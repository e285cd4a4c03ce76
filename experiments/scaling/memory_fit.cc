#include "experiments/scaling/memory_fit.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<FittedPoint> FewestMicroBatches(StepCase c, int64_t batch) {
  for (int64_t micro_batches = 1;; micro_batches *= 2) {
    c.config.micro_batches = static_cast<int>(micro_batches);
    c.config.micro_batch_size = batch / micro_batches;
    PIPELAB_ASSIGN_OR_RETURN(StepPrediction point, PredictStep(c.on, c.config));
    const bool fits = point.fits;
    if (fits || micro_batches * 2 > batch) return FittedPoint{c, std::move(point), fits};
  }
}

absl::StatusOr<FittedPoint> LargestBatch(StepCase c, int64_t batch) {
  for (int64_t samples = std::max<int64_t>(batch / c.config.micro_batches, 1);; samples /= 2) {
    c.config.micro_batch_size = samples;
    PIPELAB_ASSIGN_OR_RETURN(StepPrediction point, PredictStep(c.on, c.config));
    const bool fits = point.fits;
    if (fits || samples == 1) return FittedPoint{c, std::move(point), fits};
  }
}

Bytes ActivationsOf(const StepPrediction& point) {
  Bytes sum;
  for (const DeviceTrace& d : point.trace.devices) sum += d.peak_activation;
  return sum;
}

std::string LayoutOf(const GroupedModel& model, const StepPrediction& point) {
  const std::vector<int>& stages = point.step.partition.stage_of_layer;
  std::vector<int> groups(point.step.partition.num_stages());
  for (size_t i = 0; i < stages.size(); ++i) {
    const bool first = i == 0 || model.group_of_layer[i] != model.group_of_layer[i - 1];
    if (first) ++groups[stages[i]];
  }
  return absl::StrJoin(groups, ",");
}

}  // namespace pipelab
