// Step times of a comparison as the cost model has them for this machine: its kernels are measured
// in turns with the trainings, so that both meet the same neighbours on the machine.
//
//   StepTimePrediction prediction;
//   prediction.Measure();                          // before each training
//   PIPELAB_RETURN_IF_ERROR(prediction.Predict(graph, options, &result));
#ifndef PIPELAB_EXPERIMENTS_TRAINING_COMPARISON_PREDICTION_H_
#define PIPELAB_EXPERIMENTS_TRAINING_COMPARISON_PREDICTION_H_

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "experiments/calibration/kernel_times.h"
#include "experiments/calibration/link_times.h"
#include "experiments/training/comparison.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

class StepTimePrediction {
 public:
  StepTimePrediction();

  // One round of QuickCalibration, under a second. The communicator's errors.
  absl::Status Measure();
  // Sets `machine`, `serial_predicted` and the schemes' `predicted`. FailedPrecondition where the
  // measurements make no specification.
  absl::Status Predict(const ModelGraph& graph, const ComparisonOptions& options,
                       ComparisonResult* result) const;

 private:
  KernelMeasurements kernels_;
  absl::optional<LinkTimes> link_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAINING_COMPARISON_PREDICTION_H_
