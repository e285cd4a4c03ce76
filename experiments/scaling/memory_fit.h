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

#include "absl/status/statusor.h"
#include "experiments/scaling/pipeline_point.h"

namespace pipelab {

struct FittedPoint {
  PipelineCase chosen;
  PipelinePoint point;
  bool fits = false;
};

bool Fits(const PipelineCase& c, const PipelinePoint& point);

// `batch` samples a step in 1, 2, 4, ... micro-batches, the first that fits.
absl::StatusOr<FittedPoint> FewestMicroBatches(PipelineCase c, int64_t batch);

// The micro-batches of the case, of batch / micro-batches samples each, or a half, a quarter, ...
absl::StatusOr<FittedPoint> LargestBatch(PipelineCase c, int64_t batch);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SCALING_MEMORY_FIT_H_
