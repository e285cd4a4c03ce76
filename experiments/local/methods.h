// Ways to train a pipeline that differ in what they learn from, side by side: backpropagation
// (1F1B, zero bubble), late gradients (PARTIME), older weights (PipeDream-2BW), local losses
// (PPLL). One model, one machine, the same samples.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<Method> methods, PricedMethods(cluster));
//   PIPELAB_RETURN_IF_ERROR(TrainMethods(images, /*batches=*/1024, &methods));
//   report.AddTable(MethodTable(methods));
//
// The model is SmallAmoebaNet on Fashion-MNIST, in four stages. Prices are simulated in float32;
// accuracies are measured.
#ifndef PIPELAB_EXPERIMENTS_LOCAL_METHODS_H_
#define PIPELAB_EXPERIMENTS_LOCAL_METHODS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "models/data/images.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/units.h"

namespace pipelab {

struct Method {
  std::string scheme;
  Nanoseconds step;      // of kMethodSamples
  Bytes largest_device;  // state and activations
  Bytes sent;            // by all devices in a step
  int late = 0;          // micro-batches: Lateness
  double idle = 0;       // of the devices' time, 0 to 1
  double filled = 0;     // of that: what a network's inference does in the gaps
  std::string equal_to;  // the scheme that learns the same bits; empty: it is trained itself
  absl::optional<double> accuracy;  // of the last stage's own loss
  std::vector<double> exits;        // of the heads before it
};

inline constexpr int kMethodDevices = 4;
inline constexpr int kMethodMicroBatches = 8;  // of an optimizer step
// Micro-batches of one run of an asynchronous program, which begins without anything in flight.
inline constexpr int kMethodRun = 512;
inline constexpr int64_t kMethodSamples = 512;  // of a step on paper: 64 micro-batches of 8

// The most micro-batches by which a gradient is older than the weights that it changes: by late
// gradients, on the way from the loss to the first stage, by the weights that it was computed with,
// or by samples that a stage reads again after newer ones.
int Lateness(const Schedule& schedule);

absl::StatusOr<std::vector<Method>> PricedMethods(const ClusterSpec& cluster);
inline constexpr int64_t kMethodBatch = 64;  // images of a batch, after each of which 1F1B steps
// How a method trains, and what a network that is trained so reaches: the accuracy of each loss,
// the network's own last.
TrainingOptions MethodTraining(const Scheme& scheme, int64_t batches);
absl::StatusOr<std::vector<double>> TrainedAccuracies(const TrainingOptions& options,
                                                      const ModelGraph& graph,
                                                      const ImageData& images, int64_t batches);
// InvalidArgument naming --train_batches, where it is not whole runs.
absl::Status CheckTrainBatches(int64_t batches);
// Trains each on the same `batches` batches, and judges it on the held-out images. InvalidArgument
// names --train_batches.
absl::Status TrainMethods(const ImageData& images, int64_t batches, std::vector<Method>* methods);

// `samples`: that accuracies are after.
Table MethodTable(const std::vector<Method>& methods, int64_t samples);
std::vector<Claim> MethodClaims(const std::vector<Method>& methods, int64_t batches);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_LOCAL_METHODS_H_
