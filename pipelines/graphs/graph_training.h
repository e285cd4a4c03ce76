// Trains a graph network with prepared batches: one program of an epoch
// (pipelines/graphs/preparation.h) on threads, or on processes that have a copy's devices each.
//
//   GraphTrainingOptions options;
//   options.sizes.workers = 1;
//   options.batches.batch = 1024;
//   PIPELAB_ASSIGN_OR_RETURN(auto training, GraphTraining::Create(&data, options));
//   PIPELAB_ASSIGN_OR_RETURN(GraphEpoch epoch, training->RunEpoch());
//   epoch.losses;                              // of each batch, the same bits for all sizes
//   PIPELAB_ASSIGN_OR_RETURN(double share, training->Accuracy(data.test, {20, 20, 20}));
//
// Copies divide each batch's targets; their gradients are summed in order. Or they are the members
// of a split group (split_sampler.h): each vertex of each layer of a batch is computed by its
// owner, workers of one turn draw together, and trainers exchange rows.
#ifndef PIPELAB_PIPELINES_GRAPHS_GRAPH_TRAINING_H_
#define PIPELAB_PIPELINES_GRAPHS_GRAPH_TRAINING_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/comm/transport.h"
#include "kernels/compute_device.h"
#include "models/data/graph_batch.h"
#include "models/data/split_sampler.h"
#include "models/zoo/graph_network.h"
#include "pipelines/graphs/graph_stage.h"
#include "pipelines/graphs/preparation.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

struct GraphTrainingOptions {
  PreparationSizes sizes;     // `batches` and `copies` are made of the rest
  GraphBatchOptions batches;  // `members` are the copies
  GraphNetworkConfig model;   // width, classes and layers are made of the data and the fan-outs
  GraphTrainOptions train;
  const VertexOwners* owners = nullptr;  // copies are a split group's members
  // The trainer takes whichever worker's batch has come, as SALIENT's does. Then a batch's number
  // of the step, and with it dropout and losses, hang on who is fast. One copy, no copy engine.
  bool first_come = false;
  int64_t steps_of_epoch = 0;                // fewer than the data has; 0: all
  const ComputeDevices* trainers = nullptr;  // null: this machine's processors, each with
  int threads = 1;                           // of them, of which losses are independent
  Transport* transport = nullptr;            // null: this process
  absl::Duration wait_limit = absl::Seconds(60);
};

struct GraphEpoch {
  Trace trace;  // of this process's devices
  std::vector<double>
      losses;  // [batch] mean over the batch's targets, nats; of this process's copies
  std::map<int32_t, std::vector<float>> logits;  // [vertex] of the last batch, where they are kept
};

class GraphTraining {
 public:
  static absl::StatusOr<std::unique_ptr<GraphTraining>> Create(const GraphData* data,
                                                               const GraphTrainingOptions& options);
  virtual ~GraphTraining() = default;

  virtual absl::StatusOr<GraphEpoch> RunEpoch() = 0;
  // Share of the vertices that the first copy's network labels right, of sampled neighbours. With
  // one fan-out of kAllNeighbours: of all, layer by layer over the whole graph.
  virtual absl::StatusOr<double> Accuracy(absl::Span<const int32_t> vertices,
                                          const std::vector<int>& fanouts) = 0;
  virtual const Program& program() const = 0;
  virtual const GraphBatches& batches() const = 0;
  virtual StageParameters& parameters() = 0;  // of the first copy here
};

// The plain loop: sample, gather, forward, backward, step, one batch after the other. Losses as
// RunEpoch's, of `epochs` epochs. It shares layers and batches with GraphTraining, and no stage.
absl::StatusOr<std::vector<double>> SerialGraphLosses(const GraphData* data,
                                                      const GraphTrainingOptions& options,
                                                      int epochs);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_GRAPHS_GRAPH_TRAINING_H_
