// pipelab run's training: under its schedule, and by the serial loop that it must equal.
//
//   PIPELAB_ASSIGN_OR_RETURN(Trained trained, TrainUnderScheme(study, processes.transport()));
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> serial,
//                            TrainSerially(study, micro_batches, {}, {}, trained));
//
// InvalidArgument: --resume, --checkpoint or --pretrained do not fit, or this machine has too
// little memory. Errors of training and of files keep their code.
#ifndef PIPELAB_EXPERIMENTS_RUN_TRAINED_H_
#define PIPELAB_EXPERIMENTS_RUN_TRAINED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/run/run_input.h"
#include "experiments/training/comparison.h"
#include "kernels/compute_device.h"
#include "models/checkpoint/training_state.h"
#include "models/graph/layer_spec.h"
#include "models/layers/serial_trainer.h"
#include "pipelines/ir/trace.h"
#include "tools/base/units.h"

namespace pipelab {

struct Trained {
  SchemeResult result;  // losses, and what they must equal
  Trace trace;          // of the last step
  Trace predicted;      // of the program's devices
  TrainingState from;   // of --resume's file, or with --pretrained's weights, or none
  std::vector<ComputeDevice::Counts> counts;
  ModelGraph graph;        // as it was trained: with local heads
  SerialOptions serial;    // what a plain loop must do to have the same losses
  bool has_serial = true;  // false: asynchronous by no published rule, or unequal passes
  Nanoseconds measured;    // of a step, the median of those that are replayed
  Nanoseconds replayed;    // of a step, with a core for each device
  std::string batch_norm;  // a line about copies
  // By step, as TrainingStep has them; loads are 0 in a model without experts.
  std::vector<double> largest_loads;
  std::vector<int64_t> dropped_choices;
};

// Trains from the study's --resume, and into its --checkpoint.
absl::StatusOr<Trained> TrainUnderScheme(const RunInput& study, Transport* transport);

// The losses [step] of a plain loop over the same samples. `rounded`: each weight begins as the
// next larger number, to see what training makes of the smallest difference.
absl::StatusOr<std::vector<double>> TrainSerially(const RunInput& study, int micro_batches,
                                                  std::vector<int> sum_of_micro_batch,
                                                  std::vector<int64_t> slices,
                                                  const Trained& trained, bool rounded = false);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_RUN_TRAINED_H_
