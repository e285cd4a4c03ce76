// The batch, and its split into micro-batches, with which a pipeline fits into its devices' memory.
//
//   PIPELAB_ASSIGN_OR_RETURN(FittedPoint p, FewestMicroBatches(c, /*batch=*/128));
//   p.fits;       // or the smallest that there is, which does not
//
// "Batch size was adjusted to fit memory if necessary" (GPipe, Table 2): it is halved until it
// fits.
#ifndef PIPELAB_EXPERIMENTS_SCALING_MEMORY_FIT_H_
#define PIPELAB_EXPERIMENTS_SCALING_MEMORY_FIT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "pipelines/step/step.h"

namespace pipelab {

struct StepCase {
  StepModel on;
  StepConfig config;

  StepCase() {
    on.optimizer_tensors = 1;  // 12 bytes a parameter with value and gradient, as GPipe counts
    config.scheme = "gpipe";
    config.cut = CutRule::kFlopsVariance;  // GPipe's own
  }
};

struct FittedPoint {
  StepCase chosen;
  StepPrediction point;
  bool fits = false;
};

// `batch` samples a step in 1, 2, 4, ... micro-batches, the first that fits.
absl::StatusOr<FittedPoint> FewestMicroBatches(StepCase c, int64_t batch);

// The micro-batches of the case, of batch / micro-batches samples each, or a half, a quarter, ...
absl::StatusOr<FittedPoint> LargestBatch(StepCase c, int64_t batch);

// The activations of all devices together, at their peaks.
Bytes ActivationsOf(const StepPrediction& point);
// "5,7,6,6": the groups of each stage.
std::string LayoutOf(const GroupedModel& model, const StepPrediction& point);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SCALING_MEMORY_FIT_H_
