#include "experiments/scaling/memory_fit.h"

#include <algorithm>
#include <utility>

#include "tools/base/status_macros.h"

namespace pipelab {

bool Fits(const PipelineCase& c, const PipelinePoint& point) {
  return point.largest_device() <= c.cluster->device.memory.value;
}

absl::StatusOr<FittedPoint> FewestMicroBatches(PipelineCase c, int64_t batch) {
  for (int64_t micro_batches = 1;; micro_batches *= 2) {
    c.sizes.micro_batches = static_cast<int>(micro_batches);
    c.micro_batch_samples = batch / micro_batches;
    PIPELAB_ASSIGN_OR_RETURN(PipelinePoint point, EvaluatePipeline(c));
    const bool fits = Fits(c, point);
    if (fits || micro_batches * 2 > batch) return FittedPoint{c, std::move(point), fits};
  }
}

absl::StatusOr<FittedPoint> LargestBatch(PipelineCase c, int64_t batch) {
  for (int64_t samples = std::max<int64_t>(batch / c.sizes.micro_batches, 1);; samples /= 2) {
    c.micro_batch_samples = samples;
    PIPELAB_ASSIGN_OR_RETURN(PipelinePoint point, EvaluatePipeline(c));
    const bool fits = Fits(c, point);
    if (fits || samples == 1) return FittedPoint{c, std::move(point), fits};
  }
}

}  // namespace pipelab
