// How small networks are trained in tests: one place for their micro-batches, optimizer and limit,
// for the serial loop that pipelines are compared with, and for memory as predicted.
#ifndef PIPELAB_TESTS_SMALL_TRAINING_H_
#define PIPELAB_TESTS_SMALL_TRAINING_H_

#include <string>
#include <vector>

#include "kernels/compute_device.h"
#include "models/data/batch_source.h"
#include "models/graph/layer_spec.h"
#include "models/layers/serial_trainer.h"
#include "pipelines/ir/trace.h"
#include "pipelines/runtime/training.h"
#include "pipelines/step/step_config.h"
#include "tests/small_gpt.h"

namespace pipelab {

// A chain of nine convolutions of images of 6 x 8.
ModelGraph SmallChain();

TrainingOptions SmallTraining(const std::string& scheme, int devices, int micro_batches);

// Whether the scheme has a schedule of the configuration's sizes and copies.
bool Serves(const StepConfig& config);
// The recomputation of whole stages, or none.
Recompute RecomputeIf(bool recompute);

// The same for the serial loop.
SerialOptions SmallSerial(const BatchSource& data, int micro_batches);

// By step. Where training fails, so does the test, and the steps before are returned.
std::vector<double> SerialLosses(const ModelGraph& graph, const SerialOptions& options, int steps,
                                 const ComputeDevices& devices = nullptr);  // null: the CPU

// The same of a pipeline, whose devices have the peaks and send the bytes that the simulator
// predicts, in every step. `all_devices`: false in another process than the first.
std::vector<double> LossesAsPredicted(PipelineTraining* training, int steps,
                                      bool all_devices = true);

// Trains a pipeline, and the serial loop that it must equal: with the schedule's published
// staleness where its steps are its own. Losses and all parameters are the same bits, and memory
// and traffic are as predicted. Returns the losses. Where devices are spread over processes, each
// makes this call, and the first compares parameters and memory.
std::vector<double> ExpectAsSerial(const ModelGraph& graph, const BatchSource& data,
                                   const TrainingOptions& options, int steps);

// Losses within the tolerance of another order of sums.
void ExpectWithinTolerance(const std::vector<double>& losses, const TrainingOptions& options,
                           const std::vector<double>& serial);

// Each device's state and traffic, to the byte.
void ExpectStateAndTraffic(const Trace& predicted, const Trace& measured);

// For SCOPED_TRACE: scheme, sizes and stages.
std::string Describe(const TrainingOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SMALL_TRAINING_H_
