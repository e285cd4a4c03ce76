// Trains one model under one scheme on CPU devices: the step that has the configuration's price
// (pipelines/step/step.h), with a device for every copy, and for each an arena, a backend and stage
// modules, and the executor. Of each device of the program there are T ranks: rank t of device d is
// d T + t, in traces too. Devices are threads of this
// process, or spread over several (TrainingOptions::transport): then every process has a training
// of its own, makes the same calls in the same order and gets the same losses.
//
//   TrainingOptions options;
//   PIPELAB_ASSIGN_OR_RETURN(options.config, ParseStepConfig("", "1f1b:P=4,M=8,b=2"));
//   PIPELAB_ASSIGN_OR_RETURN(auto training, PipelineTraining::Create(graph, batches, options));
//   for (int i = 0; i < 100; ++i) {
//     PIPELAB_ASSIGN_OR_RETURN(TrainingStep step, training->Step());     // step.loss [nats/token]
//   }
//
// Stages take the edges that the model has between their layers (cost/model_partition.h): a
// schedule of a chain of stages serves any partition, since stages are numbered along the edges; a
// schedule of another stage graph must have that of the partition. A scheme that takes a stage
// graph and was given none gets that of the configuration's layout.
//
// Errors: InvalidArgument naming the option for sizes that the scheme or the model cannot serve;
// the executor's error, with device and action, when a step fails.
#ifndef PIPELAB_PIPELINES_RUNTIME_TRAINING_H_
#define PIPELAB_PIPELINES_RUNTIME_TRAINING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "kernels/comm/transport.h"
#include "kernels/compute_device.h"
#include "models/checkpoint/training_state.h"
#include "models/data/batch_source.h"
#include "models/graph/layer_spec.h"
#include "models/layers/optimizer.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/fill/fill_runner.h"  // IWYU pragma: export
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/ir/trace.h"
#include "pipelines/runtime/batch_norm.h"  // IWYU pragma: export
#include "pipelines/step/step_config.h"
#include "tools/base/units.h"

namespace pipelab {

struct FillOptions {
  int learn_steps = 3;                   // in which nothing runs
  Nanoseconds slack = Microseconds(50);  // of each wait, left free
  // What the training and the jobs may use of a rank's memory; 0: as much as they want.
  Bytes device_memory;
};

// Small networks are cut between any two layers, unless their configuration says otherwise.
inline StepConfig CutByLayers() {
  StepConfig config;
  config.cut = CutRule::kLayers;
  return config;
}

struct TrainingOptions {
  // The scheme and its sizes, the grid, the cut, and how state and activations are kept: what has a
  // price in every command (step_config.h). D copies divide the micro-batch of b D samples.
  StepConfig config = CutByLayers();
  // The caller's own, in the place of the scheme, P, V and M. Its groups of devices divide each
  // micro-batch of b samples by rows.
  absl::optional<Schedule> schedule;
  // Tokens of each slice, where the schedule has token slices; empty: as equal as can be, the first
  // ones longer.
  std::vector<int64_t> slices;
  bool sequential = false;  // OwnSchedule::chained (step_cache.h)

  uint64_t seed = 1;  // of weights and dropout
  OptimizerOptions optimizer;
  absl::Duration wait_limit = absl::Seconds(60);
  BytesPerSecond host_bandwidth{0};  // ExecutorOptions::host_bandwidth
  bool trace = true;
  bool rendezvous = false;  // in-process sends wait for their receivers
  ComputeDevices devices;   // what ranks compute on; null: the CPU, a thread each
  // Where the devices are; null: all in this process. Must outlive the training.
  Transport* transport = nullptr;
  // Other jobs for the waits of each rank, on its backend for them; null: none. Losses and
  // parameters are the same bits.
  std::function<absl::StatusOr<FillWorks>(int rank, Backend* backend)> fill_works;
  FillOptions fill;

  // Samples of a micro-batch, over all copies.
  int64_t samples() const { return config.micro_batch_size * config.data; }
};

struct TrainingStep {
  double loss = 0;  // mean over the step's tokens, nats
  // The norm of all gradients together, before clipping; 0 where clip_norm is.
  double gradient_norm = 0;
  // For models with experts: the rows of the fullest expert over its layer's mean, in the layer
  // where that is most; and how many choices capacities dropped. 0 if only a GPU knows.
  double largest_load = 0;
  int64_t dropped_choices = 0;
  // The trace of all ranks; a process that is not the first has that of its own ranks.
  Trace trace;
};

// The part of a trace of ranks that is a trace of the program's devices: the ranks that are member
// t of their tensor-parallel groups.
Trace TraceOfMember(const Trace& ranks, int64_t tensor_parallel, int64_t t);

class PipelineTraining {
 public:
  // `graph` and `batches` must outlive the training.
  static absl::StatusOr<std::unique_ptr<PipelineTraining>> Create(const ModelGraph& graph,
                                                                  const BatchSource& batches,
                                                                  const TrainingOptions& options);
  virtual ~PipelineTraining() = default;

  // One run of the program. Asynchronous schemes take several optimizer steps in it.
  virtual absl::StatusOr<TrainingStep> Step() = 0;
  // A copy of a parameter's value, or of running statistics, of the first copy of its stage;
  // NotFound. Like State and SetState, called by all processes where there are several.
  virtual absl::StatusOr<std::vector<float>> ParameterValue(const std::string& name) const = 0;

  // Everything that a step changes, put together from stages, shards and copies, to go on from
  // under any scheme (models/checkpoint/training_state.h), in any number of processes.
  // FailedPrecondition after a step that failed. In another process than the first: without
  // tensors.
  virtual absl::StatusOr<TrainingState> State() const = 0;
  // All of it or, with an error that names what does not fit, nothing. Of several processes, all
  // get the first one's `state`. (checkpoint.h has both with files.)
  virtual absl::Status SetState(const TrainingState& state) = 0;

  virtual const Program& program() const = 0;
  // Tokens of each token slice; empty: whole samples.
  virtual const std::vector<int64_t>& slices() const = 0;
  // Times and memory from the model's flops and bytes alone: what predictions are made of. Only
  // ratios of times mean something; the rate behind them is nominal. Of one rank of a
  // tensor-parallel group: all of a group do the same.
  virtual const CostTable& costs() const = 0;
  virtual const ModelPartition& partition() const = 0;
  // The model as the devices train it: with the heads of stages that learn locally.
  virtual const ModelGraph& graph() const = 0;
  // The fingerprint of its data, some samples of which this reads.
  virtual std::string data() const = 0;
  // What the devices of this process counted, in the order of ranks (kernels/compute_device.h).
  virtual std::vector<ComputeDevice::Counts> DeviceCounts() const = 0;
  // What the other jobs of this process's ranks have done; empty where there are none.
  virtual std::vector<FillReport> FillReports() const = 0;
};

// What a training cuts its model into without a scheme: stages as `layout` says (num_stages of
// them, where that is not 0), or ranges of layers, balanced by flops.
absl::StatusOr<ModelPartition> ChoosePartition(const ModelGraph& graph, int num_stages,
                                               int64_t micro_batch_size, absl::string_view layout);

// Whether training under the schedule must give the serial loop's bits: each stage's gradients are
// added in micro-batch order on one device, a micro-batch at a time. (The partition must keep the
// order of sums as well: SumsInLayerOrder.)
bool KeepsMicroBatchOrder(const Schedule& schedule);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_TRAINING_H_
