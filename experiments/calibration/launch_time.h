// What one operation takes beside its kernel: the layer, the stage, memory for the result.
//
//   LaunchProbe launch;
//   const double seconds = launch.Measure();         // processor time, of one operation
//
// A stage of many activations of 16 numbers each runs forward and backward; what a call of such a
// kernel takes by itself is taken off.
#ifndef PIPELAB_EXPERIMENTS_CALIBRATION_LAUNCH_TIME_H_
#define PIPELAB_EXPERIMENTS_CALIBRATION_LAUNCH_TIME_H_

#include <memory>

#include "kernels/backend.h"
#include "models/data/random_batches.h"
#include "models/graph/layer_spec.h"
#include "pipelines/runtime/layer_stage.h"

namespace pipelab {

class LaunchProbe {
 public:
  LaunchProbe();

  double Measure();  // the mean over some turns

 private:
  void Turn();
  double KernelSeconds();

  const ModelGraph graph_;
  const RandomBatches data_;
  Arena arena_;
  const std::unique_ptr<Backend> backend_;
  std::unique_ptr<LayerStage> stage_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_CALIBRATION_LAUNCH_TIME_H_
